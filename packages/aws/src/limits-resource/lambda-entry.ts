/** The bundle of the Lambda function, which exports the handler and nothing else. */

export { handler } from "./lambda.ts";
