/** Whether there is a table of a name, whoever made it. */

import type { Aws } from "./aws.ts";
import { AwsRefusal } from "./aws-failure.ts";

export async function tableExists(aws: Aws, name: string): Promise<boolean> {
  try {
    await aws.send("dynamodb:DescribeTable", { TableName: name });
    return true;
  } catch (error) {
    if (error instanceof AwsRefusal && error.awsCode === "ResourceNotFoundException") return false;
    throw error;
  }
}
