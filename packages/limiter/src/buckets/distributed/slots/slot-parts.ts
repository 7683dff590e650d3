/** The parts of a store that hold slots in bucket items. */

import { HolderRecords } from "../../../records/holders.ts";
import type { RecordContext } from "../../../records/record-context.ts";
import {
  holderTimes,
  REMOTE_HOLDERS,
  SlotHolder,
  type SlotsLostWarning,
} from "../../slots/slot-holder.ts";
import type { UntilAnsweredOptions } from "../../slots/until-answered.ts";
import type { BucketStates } from "../state/bucket-states.ts";
import { DeadHolders } from "./dead-holders.ts";
import { OwnSlots } from "./own-slots.ts";

export interface SlotPartsOptions extends Pick<UntilAnsweredOptions, "timer"> {
  /** This process, where the namespaces of a store share it; absent: one of its own. */
  readonly holder?: SlotHolder;
  readonly slotExpirySeconds?: number | undefined;
  readonly timeoutMs: number;
  readonly onWarning: (warning: SlotsLostWarning) => void;
}

export interface SlotParts {
  readonly own: OwnSlots;
  readonly dead: DeadHolders;
}

/** Makes the parts. `closed` aborts when the store is closed. */
export function slotParts(
  context: RecordContext,
  states: BucketStates,
  options: SlotPartsOptions,
  closed: AbortSignal,
): SlotParts {
  const { clock, random } = context;
  const { timer, timeoutMs, slotExpirySeconds } = options;
  const records = new HolderRecords(context.store);
  const times = holderTimes(REMOTE_HOLDERS, slotExpirySeconds);
  const holder = options.holder ?? new SlotHolder({ records, clock, timer, random, times });
  holder.onLost(options.onWarning);
  return {
    own: new OwnSlots(context, { holder, timer, random, closed, timeoutMs }),
    dead: new DeadHolders(context, states, { records, holder }),
  };
}
