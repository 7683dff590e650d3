/**
 * The names of the Lambda functions of a stack: its own name and a suffix. AWS allows 64
 * characters, so a long stack name gets a short suffix. The template cannot count characters; the
 * suffixes are its parameters.
 */

const FUNCTION_NAME_LENGTH_MAX = 64;

interface Suffix {
  readonly parameter: string;
  readonly usual: string;
  /** Fits the longest name that a stack may have. */
  readonly short: string;
}

/** The Lambda functions of a stack. */
export const FUNCTION_SUFFIXES = {
  aggregator: { parameter: "AggregatorSuffix", usual: "aggregator", short: "aggr" },
  provisioner: { parameter: "ProvisionerSuffix", usual: "limits-provisioner", short: "prov" },
} as const satisfies Record<string, Suffix>;

/** One of the Lambda functions of a stack. */
export type LambdaName = keyof typeof FUNCTION_SUFFIXES;

export const LAMBDA_NAMES = Object.keys(FUNCTION_SUFFIXES) as LambdaName[];

export function functionNameOf(stackName: string, lambda: LambdaName): string {
  return `${stackName}-${suffixOf(stackName, lambda)}`;
}

/** Returns the parameters of the template for suffixes that differ from the usual ones. */
export function suffixParameters(stackName: string): Readonly<Record<string, string>> {
  const short = LAMBDA_NAMES.filter(
    (lambda) => suffixOf(stackName, lambda) !== FUNCTION_SUFFIXES[lambda].usual,
  );
  return Object.fromEntries(
    short.map((lambda) => [FUNCTION_SUFFIXES[lambda].parameter, suffixOf(stackName, lambda)]),
  );
}

function suffixOf(stackName: string, lambda: LambdaName): string {
  const { usual, short } = FUNCTION_SUFFIXES[lambda];
  return stackName.length + 1 + usual.length <= FUNCTION_NAME_LENGTH_MAX ? usual : short;
}
