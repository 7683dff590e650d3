/** Runs a copy: opens both stores, and takes one namespace after the other. */

import { NamespaceNotFoundError, ValidationError } from "../domain/errors/errors.ts";
import type { Namespace } from "../records/namespaces/namespace-item.ts";
import { type CopiedStore, openBoth, type StoreOrUrl } from "./copied-store.ts";
import type { CopiedNamespace, CopyReport } from "./copy-report.ts";
import type { CopyOptions } from "./copy-store.ts";
import { NamespaceCopy, type NamespaceCopyOptions } from "./namespace-copy.ts";

/** Copies the namespaces that checked options name. */
export async function copyNamespaces(
  from: StoreOrUrl,
  to: StoreOrUrl,
  options: CopyOptions,
): Promise<CopyReport> {
  const { dryRun = false } = options;
  const openOptions = { from: options.from ?? {}, to: options.to ?? {}, dryRun };
  const [source, target] = await openBoth(from, to, openOptions);
  try {
    const names = await namespacesOf(source, options.namespaces);
    const namespaces = await copyAll(source, target, names, options);
    const same = namespaces.every(({ differing }) => differing === 0);
    return { from: source.name, to: target.name, same, namespaces };
  } finally {
    await Promise.all([source.close(), target.close()]);
  }
}

/** Checks every namespace before it writes to any. */
async function copyAll(
  source: CopiedStore,
  target: CopiedStore,
  namespaces: readonly Namespace[],
  options: CopyOptions,
): Promise<CopiedNamespace[]> {
  const rules: NamespaceCopyOptions = { ...options, live: options.live === true };
  for (const { name } of namespaces) {
    await NamespaceCopy.checkSource(await source.enter(name));
    if ((await target.namespaces.get(name)) !== undefined) {
      await new NamespaceCopy(await source.enter(name), await target.enter(name), rules).check();
    }
  }
  const copied: CopiedNamespace[] = [];
  for (const namespace of namespaces) {
    options.signal?.throwIfAborted();
    copied.push(await copyOne(source, target, namespace, rules, options.dryRun === true));
  }
  return copied;
}

async function copyOne(
  source: CopiedStore,
  target: CopiedStore,
  namespace: Namespace,
  rules: NamespaceCopyOptions,
  dryRun: boolean,
): Promise<CopiedNamespace> {
  const { name } = namespace;
  const from = await source.enter(name);
  if (dryRun) {
    const known = await target.namespaces.get(name);
    return new NamespaceCopy(from, from, rules).count(known?.namespaceId);
  }
  await target.namespaces.adopt(namespace);
  const copy = new NamespaceCopy(from, await target.enter(name), rules);
  // Once more: another process may have registered the namespace, too.
  await copy.check();
  return copy.copy();
}

async function namespacesOf(
  { namespaces, name: store, namespace }: CopiedStore,
  given: readonly string[] | undefined,
): Promise<readonly Namespace[]> {
  const all = await namespaces.list();
  const names = given ?? (namespace === undefined ? undefined : [namespace]);
  if (names !== undefined) {
    return [...new Set(names)].map((name) => {
      const found = all.find((namespace) => namespace.name === name);
      if (found === undefined) throw new NamespaceNotFoundError(name);
      return found;
    });
  }
  if (all.length > 0) return all;
  throw new ValidationError("from", store, `expected a store with namespaces, got ${store}`);
}
