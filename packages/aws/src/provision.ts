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

/** Deploys or updates the stack like `stack deploy`, registers the namespaces and connects. */
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
  return repositoryOf(opened);
}
