"""Starts moto on a port, with what CloudFormation does on AWS and moto does not.

- `AWS::NoValue` in a list takes the element away.
- A change set knows what it changes: by values, by conditions, and that there is nothing to change.
- Conditions that change add and remove resources. A change set brings tags and outputs along.
- Data is retained by `RetainExceptOnCreate`, a table that was kept is taken over, and one that is
  there gets the indexes it lacks.
- A creation that fails is told as events and rolled back, instead of failing the request.
- Calls of DynamoDB come one after the other: a transaction of moto copies the table, fails when
  another thread writes meanwhile, and takes that write back when it is cancelled.

A mapping that has processed nothing says so, and Lambdas are not run: that would take Docker.
"""

import sys
import threading

from moto.awslambda.models import EventSourceMapping, LambdaBackend
from moto.cloudformation import models, parsing
from moto.dynamodb.models import Table, dynamodb_backends
from moto.dynamodb.responses import DynamoHandler
from moto.server import main

clean_json_of_moto = parsing.clean_json
create_resource_of_moto = parsing.parse_and_create_resource
create_change_set_of_moto = models.CloudFormationBackend.create_change_set
execute_change_set_of_moto = models.CloudFormationBackend.execute_change_set
delete_stack_of_moto = models.Stack.delete
delete_resource_of_moto = parsing.ResourceMap._delete_resource
call_dynamodb_of_moto = DynamoHandler.call_action
get_configuration_of_moto = EventSourceMapping.get_configuration
create_table_of_moto = Table.create_from_cloudformation_json.__func__


def clean_json(value, resources):
    if isinstance(value, list):
        cleaned = [clean_json(element, resources) for element in value]
        return [element for element in cleaned if element is not None]
    return clean_json_of_moto(value, resources)


def values_of(template, given):
    """All parameters as text: those that were given, and the defaults of the others."""
    slots = template.get("Parameters", {})
    defaults = {name: slot.get("Default", "") for name, slot in slots.items()}
    return {name: str(value) for name, value in {**defaults, **given}.items()}


def present(template, stack, parameters):
    """The resources whose condition holds."""
    found = parsing.ResourceMap(
        stack.stack_id, stack.name, parameters, {}, stack.region_name, stack.account_id, template, {}
    )
    found.load()
    conditions = found.lazy_condition_map
    resources = template.get("Resources", {})
    return [
        name
        for name, resource in resources.items()
        if "Condition" not in resource or conditions[resource["Condition"]]
    ]


def create_change_set(self, stack_name, change_set_name, template, parameters, *more, **options):
    parsed = models.Stack.parse_template(template)
    standing = [s for s in self.stacks.values() if s.name == stack_name and s.template != {}]
    for stack in standing:
        stack.parameters = values_of(stack.template_dict, stack.resource_map.resolved_parameters)
        stack.resource_map.input_parameters = stack.parameters
    ids = create_change_set_of_moto(
        self, stack_name, change_set_name, template, values_of(parsed, parameters), *more, **options
    )
    made = self.change_sets[ids[0]]
    if made.status == "FAILED" and made.tags != made.stack.tags:
        made.status, made.execution_status = "CREATE_COMPLETE", "AVAILABLE"
    return ids


def diff(self):
    before, after = self.stack.template_dict, self.template_dict
    old = present(before, self.stack, self.stack.parameters) if before else []
    new = present(after, self.stack, self.parameters)
    altered = self.stack.resource_map.build_resource_diff(after, self.parameters)["Modify"]
    actions = {
        "Add": [name for name in new if name not in old],
        "Modify": [name for name in altered if name in old and name in new],
        "Remove": [name for name in old if name not in new],
    }
    types = {**before.get("Resources", {}), **after["Resources"]}
    return [
        models.Change(action, name, types[name]["Type"])
        for action, names in actions.items()
        for name in names
    ]


def execute_change_set(self, change_set_name, stack_name=None):
    change_set = self.describe_change_set(change_set_name)
    stack = self.stacks[change_set.stack_id]
    resources = stack.resource_map
    removed = [change.logical_resource_id for change in change_set.changes if change.action == "Remove"]
    kept = {name: resources._resource_json_map[name] for name in removed}
    try:
        execute_change_set_of_moto(self, change_set_name, stack_name)
        for change in change_set.changes:
            if change.action == "Add":
                resources[change.logical_resource_id]
        for name in removed:
            gone = resources._parsed_resources.pop(name, None)
            if gone is not None:
                resources._delete_resource(gone, kept[name])
    except Exception as error:
        if change_set.change_set_type != "CREATE":
            raise
        roll_back(stack, error)
        return
    stack.tags = change_set.tags or stack.tags
    stack._parse_template()
    conditions = resources.lazy_condition_map
    outputs = {
        name: output
        for name, output in stack.template_dict.get("Outputs", {}).items()
        if "Condition" not in output or conditions[output["Condition"]]
    }
    template = {**stack.template_dict, "Outputs": outputs}
    stack.output_map = parsing.OutputMap(resources, template, stack.stack_id)
    self.exports.update({export.name: export for export in stack.exports})


def delete_stack(self):
    delete_stack_of_moto(self)
    self.output_map = parsing.OutputMap(self.resource_map, {"Outputs": {}}, self.stack_id)


def roll_back(stack, error):
    failed = getattr(error, "logical_id", "")
    resources = stack.resource_map
    tell(stack, failed, resources._resource_json_map[failed]["Type"], "CREATE_FAILED", str(error))
    stack._add_stack_event(
        "ROLLBACK_IN_PROGRESS",
        f"The following resource(s) failed to create: [{failed}]. Rollback requested by user.",
    )
    for name, resource in list(resources._parsed_resources.items()):
        if name in resources._resource_json_map and resource is not None:
            delete_resource_of_moto(resources, resource, resources._resource_json_map[name])
            del resources._parsed_resources[name]
    stack._add_stack_event("ROLLBACK_COMPLETE")
    stack.status = "ROLLBACK_COMPLETE"


def tell(stack, logical_id, resource_type, status, reason):
    stack._add_stack_event(status, reason)
    event = stack.events[-1]
    event.logical_resource_id, event.resource_type = logical_id, resource_type


def parse_and_create_resource(logical_id, *more, **options):
    try:
        return create_resource_of_moto(logical_id, *more, **options)
    except Exception as error:
        error.logical_id = getattr(error, "logical_id", logical_id)
        raise


def delete_resource(self, resource, resource_json):
    if not str(resource_json.get("DeletionPolicy", "")).startswith("Retain"):
        delete_resource_of_moto(self, resource, resource_json)


def create_table(cls, resource_name, cloudformation_json, account_id, region_name, **more):
    standing = dynamodb_backends[account_id][region_name].tables.get(resource_name)
    if standing is not None and cloudformation_json.get("DeletionPolicy") == "Retain":
        return standing
    return create_table_of_moto(
        cls, resource_name, cloudformation_json, account_id, region_name, **more
    )


def update_table(
    cls, original_resource, new_resource_name, cloudformation_json, account_id, region_name
):
    properties = cloudformation_json["Properties"]
    known = [index.name for index in original_resource.global_indexes]
    news = [
        {"Create": index}
        for index in properties["GlobalSecondaryIndexes"]
        if index["IndexName"] not in known
    ]
    if len(news) > 1:
        raise ValueError("Cannot perform more than one GSI creation or deletion in a single update")
    original_resource.attr = properties["AttributeDefinitions"]
    backend = dynamodb_backends[account_id][region_name]
    backend.update_table_global_indexes(original_resource, news)
    return original_resource


one_at_a_time = threading.Lock()


def call_dynamodb(self):
    with one_at_a_time:
        return call_dynamodb_of_moto(self)


def get_configuration(self):
    return {**get_configuration_of_moto(self), "LastProcessingResult": "No records processed"}


parsing.clean_json = clean_json
parsing.parse_and_create_resource = parse_and_create_resource
parsing.ResourceMap._delete_resource = delete_resource
models.ChangeSet.diff = diff
models.Stack.delete = delete_stack
models.CloudFormationBackend.create_change_set = create_change_set
models.CloudFormationBackend.execute_change_set = execute_change_set
Table.create_from_cloudformation_json = classmethod(create_table)
Table.update_from_cloudformation_json = classmethod(update_table)
DynamoHandler.call_action = call_dynamodb
EventSourceMapping.get_configuration = get_configuration
LambdaBackend.send_dynamodb_items = lambda self, function_arn, items, source: None

main(["--host", "127.0.0.1", "--port", sys.argv[1]])
