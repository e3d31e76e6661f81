/** Media types (RFC 9110, 8.3.1), as far as streams care: type and subtype, case-folded, parameters ignored. */

/** `text/plain` of `Text/Plain; charset=utf-8`. */
export function mimeOf(contentType: string): string {
  const semicolon = contentType.indexOf(";");
  return (semicolon < 0 ? contentType : contentType.slice(0, semicolon)).trim().toLowerCase();
}

/** Whether streams of this MIME type hold one JSON value a record (contract: `application/json` or `+json`). */
export function isJsonMime(mime: string): boolean {
  return mime === "application/json" || mime.endsWith("+json");
}
