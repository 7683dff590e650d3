/** How `console.log` shows a value. */

/** The name of the method that Node.js calls to print a value. */
export const INSPECT: unique symbol = Symbol.for("nodejs.util.inspect.custom");

/** Arguments that Node.js passes to that method: depth, style, and a function that prints. */
export type InspectStyle = readonly [
  depth: number,
  options: object,
  inspect: (value: unknown, options: object) => string,
];

/** Shows fields under a name, in the style that the caller of `inspect` chose. */
export function inspected(name: string, fields: object, style: InspectStyle): string {
  const [, options, inspect] = style;
  return `${name} ${inspect(fields, options)}`;
}
