/** A template as people write it: functions as tags, small things on one line. */

import { isPlainObject } from "@zae-limiter/limiter/domain/check.ts";
import { Document, isScalar, type Node, Pair, Scalar, YAMLMap, YAMLSeq } from "yaml";

/** Functions that take a list. */
const LIST_FUNCTIONS: readonly string[] = [
  "Fn::And",
  "Fn::Equals",
  "Fn::If",
  "Fn::Not",
  "Fn::Or",
  "Fn::Select",
  "Fn::Split",
];
/** Length from which a value, written as JSON, gets lines of its own. */
const LINE_LENGTH = 120;

export function toYaml(template: object): string {
  // CloudFormation reads the old version, where `yes` is true and 2010-09-09 a date.
  const document = new Document(undefined, { version: "1.1", merge: false });
  document.contents = nodeOf(template) as never;
  return document.toString({
    lineWidth: 0,
    // CloudFormation takes 51,200 bytes by hand, and every level of every line counts.
    indent: 1,
    indentSeq: false,
    directives: false,
    flowCollectionPadding: false,
  });
}

function nodeOf(value: unknown): Node {
  if (Array.isArray(value)) return sequenceOf(value);
  if (!isPlainObject(value)) return new Scalar(value);
  const entries = Object.entries(value).filter(([, part]) => part !== undefined);
  const [first] = entries;
  const call = first === undefined || entries.length > 1 ? undefined : functionNode(...first);
  return call ?? mapOf(entries);
}

function mapOf(entries: readonly (readonly [string, unknown])[]): YAMLMap {
  const map = new YAMLMap();
  const values = entries.map(([, value]) => nodeOf(value));
  for (const [at, [key]] of entries.entries()) map.add(new Pair(new Scalar(key), values[at]));
  map.flow = entries.length <= 2 && fitsOneLine(values, entries);
  return map;
}

function sequenceOf(values: readonly unknown[]): YAMLSeq {
  const sequence = new YAMLSeq();
  const nodes = values.map(nodeOf);
  for (const node of nodes) sequence.add(node);
  sequence.flow = fitsOneLine(nodes, values);
  return sequence;
}

function fitsOneLine(nodes: readonly (Node | undefined)[], values: unknown): boolean {
  const flat = nodes.every((node) => isScalar(node) || (node as YAMLSeq).flow === true);
  return flat && JSON.stringify(values).length <= LINE_LENGTH;
}

/** Returns `{ Ref: x }` as `!Ref x`. */
function functionNode(name: string, argument: unknown): Node | undefined {
  if (name === "Ref" || name === "Condition") return tagged(new Scalar(argument), name);
  if (name === "Fn::Sub") return tagged(new Scalar(argument), "Sub");
  if (!Array.isArray(argument)) return undefined;
  if (name === "Fn::GetAtt") return tagged(new Scalar(argument.join(".")), "GetAtt");
  if (!LIST_FUNCTIONS.includes(name)) return undefined;
  return tagged(sequenceOf(argument), name.slice("Fn::".length));
}

function tagged(node: Scalar | YAMLSeq, tag: string): Node {
  node.tag = `!${tag}`;
  return node;
}
