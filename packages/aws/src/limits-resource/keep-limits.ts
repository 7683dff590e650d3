/**
 * Keeps the limits of a namespace as a resource of a stack declares them: with the code of
 * `limits apply`, so that both do the same.
 */

import { show } from "@zae-limiter/limiter/domain/check.ts";
import {
  InfrastructureError,
  ValidationError,
  ZaeLimiterError,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import { DEFAULT_NAMESPACE } from "@zae-limiter/limiter/domain/names.ts";
import { type ApplyResult, applyManifest } from "@zae-limiter/limiter/manifest/apply.ts";
import { manifestFromProperties } from "@zae-limiter/limiter/manifest/cfn.ts";
import {
  emptyManifest,
  levelName,
  type Manifest,
  targetName,
} from "@zae-limiter/limiter/manifest/manifest.ts";
import { inNamespace, provisionerKey } from "@zae-limiter/limiter/records/keys.ts";
import type { Namespace } from "@zae-limiter/limiter/records/namespaces/namespace-item.ts";
import type { RecordContext } from "@zae-limiter/limiter/records/record-context.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import type { StoreAsItIs } from "@zae-limiter/limiter/repository/store-as-it-is.ts";
import { type Key, textAt } from "@zae-limiter/limiter/storage/item.ts";
import { isForeign, isUnmade, namespaceIdIn, physicalId } from "./physical-id.ts";
import type { Outcome } from "./reply.ts";
import type { LimitsRequest } from "./request.ts";

/** The table that a request works on. */
export interface LimitsTable {
  readonly name: string;
  readonly store: StoreAsItIs;
  /** Stops between two changes. */
  readonly signal: AbortSignal;
}

/** Handles create and update: the limits become what the properties say. */
export async function keepLimits(request: LimitsRequest, table: LimitsTable): Promise<Outcome> {
  const { ResourceProperties: properties, PhysicalResourceId: before } = request;
  checkTable(properties.TableName, table.name);
  const manifest = manifestFromProperties(properties);
  const namespace = await namespaceFor(manifest, properties.NamespaceId, table);
  const { namespaceId } = namespace;
  // A resource that the Python library named keeps its name: a new name would be a replacement.
  const same = before !== undefined && namespaceIdIn(table.name, before) === namespaceId;
  const id = same ? before : physicalId(table.name, namespaceId, request);
  const repository = await table.store.enter(namespace.name);
  await claim(repository[INTERNALS].records, id);
  const outcome = await applied(id, repository, manifest, request, table);
  // An update that failed has replaced nothing.
  return outcome.failure === undefined ? outcome : { ...outcome, physicalId: before ?? id };
}

/** Handles delete: removes the limits of the resource unless another resource declares them. */
export async function forgetLimits(request: LimitsRequest, table: LimitsTable): Promise<Outcome> {
  const id = request.PhysicalResourceId ?? "";
  const namespace = await namespaceOf(id, request, table);
  // A deleted namespace has no limits, and a stack must always be deletable.
  if (namespace === undefined) return { physicalId: id };
  const repository = await table.store.enter(namespace.name);
  const { records } = repository[INTERNALS];
  const owner = await ownerOf(records);
  // A resource that failed may have begun under the name it would have had.
  const names = [id, physicalId(table.name, namespace.namespaceId, request)];
  const isOwner = owner === undefined ? isForeign(id) : names.includes(owner);
  if (!isOwner) return { physicalId: id };
  const manifest = emptyManifest(namespace.name);
  const outcome = await applied(id, repository, manifest, request, table);
  if (outcome.failure === undefined && owner !== undefined) await release(records, owner);
  return outcome;
}

/** Applies the limits with the code of `limits apply`. Every error becomes part of the outcome. */
async function applied(
  id: string,
  repository: Repository,
  manifest: Manifest,
  { StackId, ResourceProperties: { FullApply } }: LimitsRequest,
  { signal }: LimitsTable,
): Promise<Outcome> {
  // The audit log shows which stack it was.
  const by = StackId.startsWith("arn:") ? { principal: StackId } : {};
  try {
    // CloudFormation passes every value as text.
    const full = FullApply === "true" || FullApply === true;
    const result = await applyManifest(repository, manifest, { ...by, signal, full });
    return outcomeOf(id, repository.namespaceId, result);
  } catch (error) {
    if (error instanceof ZaeLimiterError) return { physicalId: id, failure: error.message };
    throw error;
  }
}

/** Finds the namespace by the name of the resource, or else by its properties. */
async function namespaceOf(
  id: string,
  { ResourceProperties: { Namespace, NamespaceId } }: LimitsRequest,
  { name, store }: LimitsTable,
): Promise<Namespace | undefined> {
  const all = await store.namespaces.list();
  const made = all.find(({ namespaceId }) => namespaceId === namespaceIdIn(name, id));
  if (made !== undefined || !isUnmade(id)) return made;
  return all.find((candidate) =>
    NamespaceId === undefined
      ? candidate.name === (Namespace ?? DEFAULT_NAMESPACE)
      : candidate.namespaceId === NamespaceId,
  );
}

/** Refuses another table than that of the Lambda, more clearly than AWS would. */
function checkTable(asked: unknown, table: string): void {
  if (asked === undefined || asked === table) return;
  const reason = `this resource is served for the table "${table}", got ${show(asked)}`;
  throw new ValidationError("TableName", asked, reason);
}

async function namespaceFor(
  { namespace: name }: Manifest,
  namespaceId: unknown,
  { store }: LimitsTable,
): Promise<Namespace> {
  const namespaces = await store.namespaces.list();
  const found = namespaces.find((candidate) =>
    namespaceId === undefined ? candidate.name === name : candidate.namespaceId === namespaceId,
  );
  if (found !== undefined) return found;
  const asked = namespaceId === undefined ? `"${name}"` : `with the id ${show(namespaceId)}`;
  throw new InfrastructureError(
    `There is no namespace ${asked}. Register it first: zae-limiter namespace register`,
  );
}

function outcomeOf(id: string, namespaceId: string, result: ApplyResult): Outcome {
  const { applied, failed, skipped, unrecorded } = result;
  const count = (action: string) => applied.filter((change) => change.action === action).length;
  const data = {
    NamespaceId: namespaceId,
    Created: count("create"),
    Updated: count("update"),
    Deleted: count("delete"),
  };
  const sentences = [
    ...failed.map(({ change, error }) => {
      return `${levelName(change.target)} ${targetName(change.target) ?? ""}`
        .trimEnd()
        .concat(`: ${error.message}`);
    }),
    ...(skipped.length === 0 ? [] : [`${skipped.length} changes were not begun in time`]),
    ...(unrecorded === undefined ? [] : [unrecorded.message]),
  ];
  if (sentences.length === 0) return { physicalId: id, data };
  const done = `${applied.length} of ${applied.length + failed.length + skipped.length} changes`;
  return { physicalId: id, data, failure: `${done} were made. ${sentences.join("; ")}` };
}

const OWNER = "owner";

/** Records this resource as the owner: the last one that CloudFormation has set up. */
async function claim(context: RecordContext, physicalId: string): Promise<void> {
  const { store, namespaceId } = context;
  const key = ownerKey(namespaceId);
  await store.put({ ...key, ...inNamespace(namespaceId, key.PK), [OWNER]: physicalId });
}

async function ownerOf(context: RecordContext): Promise<string | undefined> {
  const item = await context.store.get(ownerKey(context.namespaceId), { consistent: true });
  return textAt(item, OWNER);
}

/** Removes the owner record, unless it names another resource by now. */
async function release(context: RecordContext, physicalId: string): Promise<void> {
  const mine = [{ is: "=", name: OWNER, value: physicalId }] as const;
  await context.store.delete(ownerKey(context.namespaceId), mine);
}

function ownerKey(namespaceId: string): Key {
  const { PK, SK } = provisionerKey(namespaceId);
  return { PK, SK: `${SK}#OWNER` };
}
