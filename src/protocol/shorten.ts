const SHOWN_MAX = 80;

/** A client's text as it is quoted in messages: escaped, and cut so that no answer grows with its request. */
export function shorten(text: string): string {
  return JSON.stringify(text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}...` : text);
}
