"""Starts moto on a port, with four things that AWS does and moto does not.

`AWS::NoValue` in a list takes the element away; a change set brings its tags to the stack; a
mapping that has processed nothing says so; and Lambdas are not run, because that would take Docker.
"""

import sys

from moto.awslambda.models import EventSourceMapping, LambdaBackend
from moto.cloudformation import models, parsing
from moto.server import main

_clean_json = parsing.clean_json
_execute_change_set = models.CloudFormationBackend.execute_change_set
_get_configuration = EventSourceMapping.get_configuration


def clean_json(value, resources):
    if isinstance(value, list):
        cleaned = [clean_json(element, resources) for element in value]
        return [element for element in cleaned if element is not None]
    return _clean_json(value, resources)


def execute_change_set(self, change_set_name, stack_name=None):
    _execute_change_set(self, change_set_name, stack_name)
    change_set = self.describe_change_set(change_set_name)
    stack = self.stacks[change_set.stack_id]
    stack.tags = change_set.tags or stack.tags


def get_configuration(self):
    return {**_get_configuration(self), "LastProcessingResult": "No records processed"}


parsing.clean_json = clean_json
models.CloudFormationBackend.execute_change_set = execute_change_set
EventSourceMapping.get_configuration = get_configuration
LambdaBackend.send_dynamodb_items = lambda self, function_arn, items, source: None

main(["--host", "127.0.0.1", "--port", sys.argv[1]])
