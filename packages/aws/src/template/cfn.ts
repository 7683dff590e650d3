/** A CloudFormation template as data, and the functions that CloudFormation evaluates in it. */

/** A value of a template. What is `undefined` is not there. */
export type CfnValue =
  | string
  | number
  | boolean
  | readonly CfnValue[]
  | { readonly [name: string]: CfnValue | undefined };

/** A parameter of a CloudFormation template. */
export interface CfnParameter {
  readonly Type: "String" | "Number";
  readonly Description: string;
  /** The value when none is passed. */
  readonly Default: string | number;
  /** The values that are allowed. */
  readonly AllowedValues?: readonly (string | number)[];
  /** A regular expression for allowed values. */
  readonly AllowedPattern?: string;
  /** The text for a value that is not allowed. */
  readonly ConstraintDescription?: string;
  /** The smallest number that is allowed. */
  readonly MinValue?: number;
  /** The largest number that is allowed. */
  readonly MaxValue?: number;
}

/** A resource of a CloudFormation template. */
export interface CfnResource {
  /** The type of the resource, such as `AWS::DynamoDB::Table`. */
  readonly Type: string;
  /** The condition under which the stack has it. */
  readonly Condition?: string;
  /** The fate of the resource when the stack is deleted. */
  readonly DeletionPolicy?: "Delete" | "Retain" | "RetainExceptOnCreate";
  /** The fate of the resource when another one replaces it. */
  readonly UpdateReplacePolicy?: "Delete" | "Retain";
  /** The resources that must exist before it. */
  readonly DependsOn?: string | readonly string[];
  /** Its settings, as CloudFormation documents them for its type. */
  readonly Properties: Readonly<Record<string, CfnValue | undefined>>;
}

/** An output of a CloudFormation template. */
export interface CfnOutput {
  readonly Description: string;
  /** The condition under which the stack has it. */
  readonly Condition?: string;
  readonly Value: CfnValue;
  /** The name under which other stacks can import it. */
  readonly Export?: { readonly Name: CfnValue };
}

/** All of a template that we use. */
export interface CfnTemplate {
  readonly AWSTemplateFormatVersion: "2010-09-09";
  /** The description of the stack. */
  readonly Description: string;
  readonly Parameters: Readonly<Record<string, CfnParameter>>;
  readonly Conditions: Readonly<Record<string, CfnValue>>;
  /** Its resources by logical id. */
  readonly Resources: Readonly<Record<string, CfnResource>>;
  readonly Outputs: Readonly<Record<string, CfnOutput>>;
}

/** In the place of a property: as if the property were not there. */
const NO_VALUE: CfnValue = { Ref: "AWS::NoValue" };

/** The stack's name, which is also the name of the table and the beginning of all others. */
export const STACK_NAME: CfnValue = { Ref: "AWS::StackName" };

export function ref(name: string): CfnValue {
  return { Ref: name };
}

export function attribute(resource: string, name: string): CfnValue {
  return { "Fn::GetAtt": [resource, name] };
}

/** Returns a text in which `${Name}` is a parameter, a resource or `${Resource.Attribute}`. */
export function sub(text: string): CfnValue {
  return { "Fn::Sub": text };
}

/** Returns a name that begins with the stack's. */
export function named(suffix: string): CfnValue {
  return sub(`\${AWS::StackName}-${suffix}`);
}

export function choose(condition: string, then: CfnValue, otherwise: CfnValue): CfnValue {
  return { "Fn::If": [condition, then, otherwise] };
}

/** Returns the value where the condition holds, and nothing elsewhere. */
export function onlyIf(condition: string, value: CfnValue): CfnValue {
  return choose(condition, value, NO_VALUE);
}

export function equals(left: CfnValue, right: CfnValue): CfnValue {
  return { "Fn::Equals": [left, right] };
}

export function not(condition: CfnValue): CfnValue {
  return { "Fn::Not": [condition] };
}

export function all(...conditions: CfnValue[]): CfnValue {
  return { "Fn::And": conditions };
}

export function either(...conditions: CfnValue[]): CfnValue {
  return { "Fn::Or": conditions };
}

/** Returns a condition by its name, within another condition. */
export function condition(name: string): CfnValue {
  return { Condition: name };
}
