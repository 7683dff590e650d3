/** `entity reset` and `entity top-up`: an operator changes the balances of a bucket. */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import type { BucketOperationResult } from "@zae-limiter/limiter/buckets/balance-operations.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { leaf, type OptionSpec, type Result } from "../frame/command.ts";
import { PRINCIPAL_OPTION, type PrincipalOptions, principalOf } from "../store/principal.ts";
import { spentNote } from "../store/spent-note.ts";
import { readAmount } from "../terminal/amounts.ts";
import { shownAmount } from "../terminal/numbers.ts";

const ID = { name: "<id>", text: "the entity" } as const;
const RESOURCE_OPTION: OptionSpec = {
  flags: "-r, --resource <name>",
  text: "the resource",
  required: true,
};
const KEY_OPTION: OptionSpec = {
  flags: "--idempotency-key <key>",
  text: "makes it happen once within three days, however often the command runs",
};
const SHAPE = { entity_id: "text", resource: "text", shards: "number", amounts: "object" } as const;

interface OperationOptions extends PrincipalOptions {
  readonly resource: string;
  readonly idempotencyKey?: string;
}

export const resetBalances = leaf<OperationOptions & { limit: readonly string[] }>({
  name: "reset",
  summary: "fills the limits of an entity for a resource, and forgives its debt",
  arguments: [ID],
  options: [
    RESOURCE_OPTION,
    { flags: "-l, --limit <name>", text: "only this limit; repeatable", repeat: true },
    KEY_OPTION,
    PRINCIPAL_OPTION,
  ],
  store: "change",
  examples: ["entity reset key-1 -r gpt-4", "entity reset key-1 -r gpt-4 -l tpm"],
  json: SHAPE,
  run: async ({ args: [id = ""], options, open, note }) => {
    const { limit } = options;
    const repository = await open();
    const request = { ...targetOf(id, options), ...(limit.length === 0 ? {} : { limits: limit }) };
    const result = await repository.buckets.reset(request);
    await noteSpent(repository, result, note);
    return shown("Reset", "reset", result);
  },
});

export const topUpBalances = leaf<OperationOptions & { add: readonly string[] }>({
  name: "top-up",
  summary: "adds tokens to limits of an entity for a resource",
  details:
    "A rate takes what it has room for, and not more; to a quota or a session the tokens are " +
    "added, until its period ends.",
  arguments: [ID],
  options: [
    RESOURCE_OPTION,
    {
      flags: "-a, --add <limit:amount>",
      text: "whole tokens for a limit, or dollars, 'usd:$5'; repeatable",
      required: true,
      repeat: true,
    },
    KEY_OPTION,
    PRINCIPAL_OPTION,
  ],
  store: "change",
  examples: ["entity top-up key-1 -r gpt-4 --add tpd:5000 --idempotency-key order-1"],
  json: SHAPE,
  run: async ({ args: [id = ""], options, open, note }) => {
    const amounts = Object.fromEntries(options.add.map(addition));
    const repository = await open();
    const request = { ...targetOf(id, options), amounts };
    const result = await repository.buckets.topUp(request);
    await noteSpent(repository, result, note);
    return shown("Topped up", "add", result);
  },
});

/** Says where other processes may refuse for a while by a quota that they have seen spent. */
async function noteSpent(
  repository: Repository,
  { entityId, resource, shards, amounts }: BucketOperationResult,
  note: (text: string) => void,
): Promise<void> {
  if (shards === 0) return;
  const states = await repository.buckets.list(entityId, { resource });
  const changed = states.filter(({ limitName }) => limitName in amounts);
  const text = spentNote(
    repository,
    changed.map(({ limit }) => limit),
  );
  if (text !== undefined) note(text);
}

function targetOf(entityId: string, options: OperationOptions) {
  const { resource, idempotencyKey } = options;
  return { entityId, resource, ...defined({ idempotencyKey }), ...principalOf(options) };
}

function addition(text: string): readonly [string, number] {
  const { name, tokens } = readAmount(text, ":", "tpd:5000");
  return [name, tokens];
}

function shown(done: string, verb: "reset" | "add", result: BucketOperationResult): Result {
  const { entityId, resource, shards, amounts } = result;
  return {
    json: () => ({ entity_id: entityId, resource, shards, amounts: { ...amounts } }),
    text: () => {
      if (shards === 0) return `${entityId} has no bucket for ${resource}: nothing to ${verb}`;
      const lines = Object.entries(amounts).map(
        ([name, added]) => `  ${name}: +${shownAmount(name, added)}`,
      );
      return [`${done} ${entityId} on ${resource}:`, ...lines].join("\n");
    },
  };
}
