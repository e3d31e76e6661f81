/**
 * The `<Error>` document of an S3 store, read leniently: it is for people and for choosing what to do next. What looks
 * otherwise has no code, and comes from no S3 store.
 */

/** Code, message and region of an `<Error>` document; nulls where there is none. */
export function readErrorDocument(text: string): {
  readonly code: string | null;
  readonly message: string | null;
  readonly region: string | null;
} {
  if (!/<Error[\s>]/.test(text)) return { code: null, message: null, region: null };
  const read = (name: string): string | null => {
    const found = new RegExp(`<${name}>([^<]{0,1000})</${name}>`).exec(text)?.[1];
    return found === undefined || found === ""
      ? null
      : found.replace(/&(amp|lt|gt|quot|apos|#39|#34);/g, (entity) => ENTITIES[entity] ?? entity);
  };
  const code = read("Code");
  return { code: code !== null && /^[\w.-]{1,100}$/.test(code) ? code : null, message: read("Message"), region: read("Region") };
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&amp;": "&",
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&apos;": "'",
  "&#39;": "'",
  "&#34;": '"',
};
