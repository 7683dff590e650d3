/** The only file of the library that reads the environment. */

/** Reads a variable; an empty one counts as one that is not set. */
function variable(name: string): string | undefined {
  const value = process.env[name];
  return value === "" ? undefined : value;
}

export const environment = {
  /** Which store to open when none is named. */
  url: () => variable("ZAEL_URL"),
  /** Which namespace to use when none is named. */
  namespace: () => variable("ZAEL_NAMESPACE"),
  /** Which table to connect to when none is named. */
  stack: () => variable("ZAEL_STACK"),
  /** Endpoint of the AWS SDK for all requests that have none of their own. */
  awsEndpoint: () => variable("AWS_ENDPOINT_URL"),
} as const;
