/** Text of anybody's choice, such as a stream's name in a message, fit to be shown. */

/** Nothing in it moves a cursor, starts a line of its own, or turns the direction of what follows. */
export function escapeControls(text: string): string {
  return text.replace(/\p{C}/gu, escapeCharacter);
}

/** As JSON and programs write it. */
export function escapeCharacter(character: string): string {
  return `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`;
}

/** The same, cut to so many characters. */
export function boundedText(text: string, charactersMax: number): string {
  return escapeControls(text.slice(0, charactersMax)).slice(0, charactersMax);
}
