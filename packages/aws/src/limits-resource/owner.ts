/** Which resource keeps the limits of a namespace: the last one that CloudFormation has set up. */

import { inNamespace, provisionerKey } from "@zae-limiter/limiter/records/keys.ts";
import type { RecordContext } from "@zae-limiter/limiter/records/record-context.ts";
import type { Key } from "@zae-limiter/limiter/storage/item.ts";
import { textAt } from "@zae-limiter/limiter/storage/item.ts";

const OWNER = "owner";

/** Records this resource as the owner of the limits. */
export async function claim(context: RecordContext, physicalId: string): Promise<void> {
  const { store, namespaceId } = context;
  const key = ownerKey(namespaceId);
  await store.put({ ...key, ...inNamespace(namespaceId, key.PK), [OWNER]: physicalId });
}

export async function ownerOf(context: RecordContext): Promise<string | undefined> {
  const item = await context.store.get(ownerKey(context.namespaceId), { consistent: true });
  return textAt(item, OWNER);
}

/** Removes the owner record, unless it names another resource by now. */
export async function release(context: RecordContext, physicalId: string): Promise<void> {
  const mine = [{ is: "=", name: OWNER, value: physicalId }] as const;
  await context.store.delete(ownerKey(context.namespaceId), mine);
}

function ownerKey(namespaceId: string): Key {
  const { PK, SK } = provisionerKey(namespaceId);
  return { PK, SK: `${SK}#OWNER` };
}
