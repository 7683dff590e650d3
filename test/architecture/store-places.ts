/** The list of stores is the only place that knows which kinds of stores there are. */

import { STORES } from "@zae-limiter/limiter/repository/stores/stores.ts";
import type { Place } from "./places.ts";

const NAMES = STORES.map(({ name }) => name).join("|");

/** A kind that is asked for, or written down: `location.kind`, `kind === "sqlite"`. */
const ASKED = [
  "\\blocation\\??\\.kind\\b",
  `\\bkind\\s*(?:[!=]==|:)\\s*["'](?:${NAMES})["']`,
  "\\{[^{}]*\\bkind\\b[^{}]*\\}(?::\\s*\\w*Location\\b|\\s*=\\s*location\\b)",
  "\\binstanceof\\s+\\w+Item(?:Store|Table)\\b",
];

const kindPlaces: Place = {
  rule: "ask the list of stores for a trait, not for the kind of a store",
  pattern: new RegExp(ASKED.join("|"), "g"),
  within: "code",
  allowed: ["packages/limiter/src/repository/stores/"],
};

const memberPlaces: Place = {
  rule: "a member of a store is part of its type, not found by its name",
  pattern: /["']\w+["']\s+in\s+(?:this\.)?#?\w*(?:[sS]tore|[tT]able)\b/g,
  within: "code",
  allowed: [],
};

export const STORE_PLACES: readonly Place[] = [kindPlaces, memberPlaces];
