/** Version and commit of this program. The build replaces `PICO_COMMIT`; run from its sources it is not known. */
import { version } from "../../package.json";

declare const PICO_COMMIT: string;

export const PROGRAM_VERSION: string = version;
export const PROGRAM_COMMIT: string = typeof PICO_COMMIT === "string" ? PICO_COMMIT : "not compiled";
