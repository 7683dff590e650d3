/** `store`: what concerns a store as a whole. */

import type { Group } from "../../frame/command.ts";
import { copy } from "./store-copy.ts";

export const store: Group = {
  name: "store",
  summary: "copies a store to another one of any kind",
  commands: [copy],
};
