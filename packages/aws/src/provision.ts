/** Deploys the stack of a table and opens it: `Repository.provision` of the package. */

import { preparedTable } from "@zae-limiter/limiter/repository/opening.ts";
import type { CreateTableOptions } from "@zae-limiter/limiter/repository/options.ts";
import { type Repository, repositoryOf } from "@zae-limiter/limiter/repository/repository.ts";
import type { StackOptions } from "./options/stack-options.ts";

/** Options for a stack on AWS. */
export interface ProvisionOptions extends CreateTableOptions {
  /** Options; those that are not given stay as they are deployed. */
  readonly stack?: StackOptions;
}

/**
 * Deploys or updates the stack like `stack deploy`, registers the namespaces and connects. Stores
 * `onUnavailable` for the namespace, so that it holds for clients that do not state it themselves.
 */
export async function provision(
  table: string,
  { stack = {}, ...options }: ProvisionOptions = {},
): Promise<Repository> {
  const opened = await preparedTable(table, options, async (given) => {
    const { checkStackOptions } = await import("./options/check-stack-options.ts");
    checkStackOptions(stack);
    const { deployStack } = await import("./deploy/deploy.ts");
    const { location, version, indexes, connection } = given;
    const deployed = { ...indexes, ...stack };
    await deployStack({ stackName: location.table, options: deployed, connection, ...version });
    // The stack has written the version record.
    return undefined;
  });
  const repository = repositoryOf(opened);
  try {
    await keepOnUnavailable(repository, options);
  } catch (error) {
    await repository.close();
    throw error;
  }
  return repository;
}

async function keepOnUnavailable(
  { limits }: Repository,
  { onUnavailable }: ProvisionOptions,
): Promise<void> {
  if (onUnavailable === undefined) return;
  const stored = await limits.getSystem();
  if (stored.onUnavailable !== onUnavailable) {
    await limits.setSystem(stored.limits, { onUnavailable });
  }
}
