/** The holders of slots in embedded stores: of one process, or of the processes of one machine. */

import { isProcessGone, type ProcessMark } from "../../base/process-mark.ts";
import { entryName, isOver, type SlotHolder } from "../slots/slot-holder.ts";
import type { SlotSource } from "./embedded-slots.ts";

/** Returns the holder of a store that ends with this process: it has no record, and never dies. */
export function onlyHolder(): SlotSource {
  const id = "here";
  let entries = 0;
  return {
    current: id,
    isOver: () => false,
    renew: async () => id,
    newEntry: () => {
      entries += 1;
      return entryName(id, entries);
    },
    add: () => {},
    close: async () => {},
    isDead: () => false,
  };
}

/** Returns this process as one of several holders. `own`: its mark, where the system shows it. */
export function holderAmong(holder: SlotHolder, own: ProcessMark | undefined): SlotSource {
  return {
    get current() {
      return holder.current;
    },
    isOver: (holderId, nowMs) => holder.isOver(holderId, nowMs),
    renew: (timeoutMs) => holder.renew(timeoutMs),
    newEntry: (holderId) => holder.newEntry(holderId),
    add: (entry, slots) => {
      holder.add(entry, slots);
    },
    close: () => holder.close(),
    isDead: (record, nowMs) => {
      if (isOver(record, holder.times, nowMs)) return true;
      const mark = record?.process;
      return mark !== undefined && own !== undefined && isProcessGone(mark, own);
    },
  };
}
