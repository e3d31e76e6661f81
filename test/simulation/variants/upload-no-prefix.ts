/** Leaves the first segment of each interval out of its objects, and commits the interval all the same. */
import { Uploader } from "../../../src/engine/uploader.ts";

export function uploadNoPrefix(): () => void {
  const { upload } = Uploader.prototype;
  Uploader.prototype.upload = function (this: Uploader, source, signal): Promise<void> {
    return upload.call(this, { ...source, segments: source.segments.slice(1) }, signal);
  };
  return () => {
    Uploader.prototype.upload = upload;
  };
}
