/**
 * The rule of plain comments: how a doc comment begins, and the verbs that no comment uses.
 *
 * A doc comment that begins with a preposition or with "What" describes a thing by another thing;
 * it cannot be read alone, and stops being true when its neighbour moves.
 */

import type { TextFile } from "./plain-words.ts";
import { lineAt, type Violation } from "./source.ts";

const OPENING = /^(?:What|Of|By|The same|Where|Those)\b/;

/** Third person, or a question that the result answers. `Its` and `This` end in `s` as well. */
const VERB = /^(?:(?!Its\b|This\b|Is\b|Has\b|As\b|Always\b)[A-Z][a-z-]*s\b|Whether\b|@)/;

/** Verbs for acts that have a technical verb, and vague numbers. */
const PRIVATE =
  /\b(?:tells?|told|telling|hears?|heard|weighs?|weighed|stands?|stood|relieves?|(?:bring|come)s? about|looks?(?! up\b| like\b)|looked(?! up\b| like\b)|so (?:many|much))\b/gi;

const COMMENT = /\/\*[\s\S]*?\*\/|(?<![:"'`\w])\/\/[^\n]*/g;

/** Helpers of tests may be named by the thing that they return. */
const TESTS = /(?:^|\/)test\//;

/** The start of the declaration of a function or a method; getters are values. */
const FUNCTION = new RegExp(
  [
    String.raw`^(?:export )?(?:async )?function\*? `,
    String.raw`^(?:export )?const \w+ = (?:async )?(?:<[^>]*>)?\([^)]*\)(?:: [^=]+)? =>`,
    String.raw`^(?:(?:static|async|override|protected|private) )*(?!if\b|for\b|while\b|switch\b|get\b|set\b|new\b|constructor\b)[#*]*\w+(?:<[^>]*>)?\(`,
  ].join("|"),
);

/** Returns the comments that break the rule, with their lines. */
export function commentViolations(files: readonly TextFile[]): Violation[] {
  return files.flatMap(({ path, text }) =>
    [...text.matchAll(COMMENT)].flatMap(({ 0: comment, index }) => {
      const at = (rule: string) => ({ path, line: lineAt(text, index), rule });
      const found = [...comment.matchAll(PRIVATE)].map(({ 0: verb }) =>
        at(`says "${verb}" in a comment: use a technical verb, or name the number`),
      );
      if (!comment.startsWith("/**")) return found;
      const sentence = comment.slice(3, -2).replace(/^[\s*]+/, "");
      const opening = OPENING.exec(sentence)?.[0];
      if (opening !== undefined) found.push(at(`has a doc comment that begins with ${opening}`));
      const next = text.slice(index + comment.length).trimStart();
      if (!TESTS.test(path) && FUNCTION.test(next) && !VERB.test(sentence)) {
        const [first] = sentence.split(/\s/, 1);
        found.push(at(`has a doc comment of a function that begins with "${first}", not a verb`));
      }
      return found;
    }),
  );
}
