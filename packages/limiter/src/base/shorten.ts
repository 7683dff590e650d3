/** How much of a value from outside is repeated in errors. */

const SHOWN_LENGTH = 50;

/** Returns the first 50 characters and `...`, or the text itself when it is no longer than that. */
export function shorten(text: string): string {
  if (text.length <= SHOWN_LENGTH) return text;
  // Cut between characters, never within a surrogate pair; 51 of them are enough to know.
  const characters = [...text.slice(0, 2 * SHOWN_LENGTH + 2)];
  if (characters.length <= SHOWN_LENGTH) return text;
  return `${characters.slice(0, SHOWN_LENGTH).join("")}...`;
}
