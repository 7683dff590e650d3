/** What the bundle of the Lambda function exports: the handler and nothing else. */

export { handler } from "./lambda.ts";
