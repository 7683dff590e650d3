/**
 * Resets as the Python library stores them: `1`, then for each expression its constrained fields
 * with a letter before each, joined by `;`. `0 0 1 * *` is `1m0h0D1`.
 */

const VERSION = "1";
/** In the order of the fields of an expression. */
const TAGS = ["m", "h", "D", "M", "w"] as const;
const TOKENS =
  /^(?:m([^a-zA-Z]+))?(?:h([^a-zA-Z]+))?(?:D([^a-zA-Z]+))?(?:M([^a-zA-Z]+))?(?:w([^a-zA-Z]+))?$/;

/** Writes the expressions of a rule. */
export function encodeResets(cron: string): string {
  const entries = cron.split(";").map((text) =>
    text
      .split(" ")
      .map((field, index) => (field === "*" ? "" : `${TAGS[index]}${field}`))
      .join(""),
  );
  return VERSION + entries.join(";");
}

/** Reads the expressions of a rule; `undefined` for a text of another version or form. */
export function decodeResets(text: string): string | undefined {
  if (!text.startsWith(VERSION)) return undefined;
  const entries = text.slice(VERSION.length).split(";");
  if (entries.some((entry) => !TOKENS.test(entry))) return undefined;
  return entries.map(fieldsOf).join(";");
}

function fieldsOf(entry: string): string {
  const fields = TOKENS.exec(entry)?.slice(1) ?? [];
  return fields.map((field) => (field as string | undefined) ?? "*").join(" ");
}
