/**
 * The package as users import it: the limiter of `packages/limiter`, and what needs
 * another room. This file is the only one that knows both; the other entry points are files of the
 * rooms, which `exports` of package.json names.
 *
 * The tags below let the API reference show the methods of `Repository`.
 */

import { provision } from "@zae-limiter/aws/provision.ts";
import { Repository as LimiterRepository } from "@zae-limiter/limiter/repository/repository.ts";

export type { StackOptions } from "@zae-limiter/aws/options/stack-options.ts";
export type { ProvisionOptions } from "@zae-limiter/aws/provision.ts";
export { formatUsage, type UsageTextOptions } from "@zae-limiter/cli/terminal/usage-text.ts";
export * from "@zae-limiter/limiter/index.ts";

/**
 * Describes what is stored in one namespace; `packages/limiter` has its methods and examples.
 *
 * @interface
 */
export type Repository = LimiterRepository;

/**
 * Opens stores: the limiter's `Repository`, which can also deploy a stack for its table.
 *
 * @namespace
 */
export const Repository = Object.assign(LimiterRepository, { provision });
