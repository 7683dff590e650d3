/** Entity ids that seem to be credentials of clients. */

/** How keys of well-known services begin, tokens in JSON, and whole headers. */
const KNOWN_PATTERN =
  /^(?:bearer |basic |(?:sk|pk|rk|zael|glpat|xox[abpors])-|(?:sk|pk|rk)_(?:live|test)_|gh[opsur]_|github_pat_|AKIA|AIza|eyJ)/i;
/** Random texts of this length are hardly names. */
const RANDOM_PATTERN = /^[\w+/=.-]{32,}$/;

/** Whether a text looks like a credential rather than a name. */
export function looksSecret(text: string): boolean {
  if (KNOWN_PATTERN.test(text)) return true;
  return RANDOM_PATTERN.test(text) && [/[a-z]/, /[A-Z]/, /\d/].every((kind) => kind.test(text));
}

/** Warns once per middleware; the text itself is in no warning. */
export function warnOfSecret(): void {
  process.emitWarning(
    "The function `entityId` of an HTTP middleware returned what looks like a secret. Entity ids " +
      "are stored and shown in answers, metrics and logs: look the key up, by `hashKey`",
    { code: "ZAEL_HTTP_SECRET_ENTITY" },
  );
}
