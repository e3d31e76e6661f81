/**
 * What others wrote, for a terminal. Records, names and a server's words may hold sequences that set the title, fill the
 * clipboard or write over what was said before; shown as escapes they do nothing. Colours pass, since logs have them, and
 * end with their line. Files and pipes get every byte as it is.
 */
import { utf8Decoder, utf8Encoder } from "../lib/bytes.ts";
import { escapeCharacter } from "../lib/plain-text.ts";

const ESCAPE = "\u001b";
const RESET = `${ESCAPE}[0m`;
/** Control characters, and those that turn the direction of what is around them. */
const DRIVING = /\p{Cc}|[\u202a-\u202e\u2066-\u2069]/gu;
/** Behind an escape: sets colours and styles (ECMA-48, SGR). */
const STYLE = /^\[[\d;:]*m/;
const STYLE_LENGTH_MAX = 64;

/** Of several lines. */
export function toTerminalText(text: string): string {
  let isStyled = false;
  return text.replace(DRIVING, (character: string, at: number) => {
    if (character === "\t" || (character === "\r" && text[at + 1] === "\n")) return character;
    if (character === "\n") {
      const end = isStyled ? `${RESET}\n` : "\n";
      isStyled = false;
      return end;
    }
    if (character === ESCAPE && STYLE.test(text.slice(at + 1, at + STYLE_LENGTH_MAX))) {
      isStyled = true;
      return character;
    }
    return escapeCharacter(character);
  });
}

/** One line without any style, as in messages. */
export function toPlainLine(text: string): string {
  return text.replace(/\s*[\r\n]+\s*/g, " ").replace(DRIVING, escapeCharacter);
}

/** Lines as an output takes them; `lines` are UTF-8. */
export function toOutputLines(lines: Uint8Array, isTerminal: boolean): Uint8Array {
  return isTerminal ? utf8Encoder.encode(toTerminalText(utf8Decoder.decode(lines))) : lines;
}
