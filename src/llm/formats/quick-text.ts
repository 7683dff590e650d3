/** Reads the most frequent kind of event without parsing it, which would take most of the time. */

/**
 * Returns the text of an event that has one delta with nothing but text; `undefined` for any other
 * event. Inside of a JSON string each quote has a backslash before it, so `prefix` and `"usage"`
 * are found as parts of the event and never as parts of a text.
 */
export function quickText(data: string, prefix: string): string | undefined {
  const at = data.indexOf(prefix);
  if (at === -1) return undefined;
  const from = at + prefix.length;
  const end = data.indexOf('"', from);
  const isAlone = data[end + 1] === "}" && data.indexOf('"delta"', end) === -1;
  if (!isAlone || data.includes('"usage":{')) return undefined;
  const text = data.slice(from, end);
  return text.includes("\\") ? undefined : text;
}
