/** Returns whether a table of that name exists, of any origin. */

import type { Aws } from "./aws.ts";
import { describeTable } from "./live-table.ts";

export async function tableExists(aws: Aws, name: string): Promise<boolean> {
  return (await describeTable(aws, name)) !== undefined;
}
