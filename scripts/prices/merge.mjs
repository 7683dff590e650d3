/** Puts the two sources together, and lists where they differ. */

import { PROVIDERS } from "./decimal.mjs";

const DIFFERENCE_MIN = 0.01;
const COMPARED = ["input", "cachedInput", "output"];

/** Returns one price for each model: the first source's, with tiers of the second that agree. */
export function mergedPrices(first, second) {
  return Object.fromEntries(
    Object.keys(PROVIDERS).map((provider) => {
      const [own, other] = [first[provider], second[provider]];
      const names = [...new Set([...Object.keys(own), ...Object.keys(other)])].sort();
      return [
        provider,
        Object.fromEntries(names.map((name) => [name, merged(own[name], other[name])])),
      ];
    }),
  );
}

/** Tiers are relative to a standard price: they are taken over only where that is the same. */
function merged(own, other) {
  if (own === undefined || other === undefined) return own ?? other;
  const isSame = COMPARED.every((part) => !differs(own[part], other[part]));
  return isSame && other.tiers !== undefined ? { ...own, tiers: other.tiers } : own;
}

/** Returns the prices of which both sources have one, and that differ by more than 1 %. */
export function differencesOf(first, second) {
  return Object.keys(PROVIDERS).flatMap((provider) =>
    Object.keys(first[provider]).flatMap((model) => {
      const [own, other] = [first[provider][model], second[provider][model] ?? {}];
      return COMPARED.filter((part) => differs(own[part], other[part])).map((part) => ({
        provider,
        model,
        part,
        own: own[part],
        other: other[part],
      }));
    }),
  );
}

function differs(left, right) {
  if (left === undefined || right === undefined) return false;
  return Math.abs(Number(left) - Number(right)) > DIFFERENCE_MIN * Number(left);
}

/** Writes the list as a page. */
export function printedDifferences(differences, { genai, litellm, date }) {
  const rows = differences.map(
    ({ provider, model, part, own, other }) =>
      `| ${provider} | ${model} | ${part} | ${own} | ${other} |`,
  );
  return `# Prices that the two sources state differently

Dollars for a million tokens, by more than 1 %, as of ${date}. The table has the first.
Written by \`npm run prices -- --write\`.

| provider | model | part | ${genai.name} ${genai.version} | ${litellm.name} ${litellm.version} |
|---|---|---|---|---|
${rows.join("\n")}
`;
}
