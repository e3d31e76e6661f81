/**
 * Whether a `PUT` of an existing name asks for the stream that is there (Pico 3.2, Durable Streams 5.1
 * and 4.2): same MIME type, lifetime, fork origin, and the same closed flag as now. Pure.
 */
import { mimeOf } from "../lib/mime.ts";
import type { ForkOrigin } from "../metadata/command.ts";
import type { CreateRequest, StreamInfo } from "./stream-service.ts";

export function matchesSettings(request: CreateRequest, existing: StreamInfo): boolean {
  return (
    request.isClosed === existing.isClosed &&
    matchesFork(request.fork, existing.fork) &&
    matchesContentType(request, existing) &&
    matchesLifetime(request, existing)
  );
}

function matchesContentType(request: CreateRequest, existing: StreamInfo): boolean {
  if (request.contentType === null) return request.fork !== null;
  return mimeOf(request.contentType) === mimeOf(existing.settings.contentType);
}

/** A fork that names no lifetime took its source's, so it asks for whatever that was. */
function matchesLifetime(request: CreateRequest, existing: StreamInfo): boolean {
  if (request.fork !== null && request.ttlSeconds === null && request.expiresAtMs === null) return true;
  return request.ttlSeconds === existing.settings.ttlSeconds && request.expiresAtMs === existing.settings.expiresAtMs;
}

function matchesFork(requested: CreateRequest["fork"], existing: ForkOrigin | null): boolean {
  if (requested === null || existing === null) return requested === existing;
  return (
    requested.sourceName === existing.sourceName &&
    requested.offset === existing.requestedOffset &&
    requested.subOffset === existing.requestedSubOffset
  );
}
