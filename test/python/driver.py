"""Drives the Python library for tests: one JSON request per line in, one JSON reply per line out.

A request is {"id", "do", ...}:
  open      stack, endpoint, namespace, connect      -> namespace id
  call      on ("repo" or "limiter"), method, args, kwargs
  acquire   entity, resource, consume, limits, also  -> lease number, or the refusal as data
  adjust    lease, amounts
  end       lease, how ("commit" or "rollback")
  aggregate table, endpoint, records                 -> what its aggregator's Lambda handler returns
  provision table, endpoint, namespace_id, action, manifest -> the same of its provisioner
Values of the library come as {"$limit": {...}}, {"$quota": {...}}, {"$schedule": {...}}.
"""

import asyncio
import contextlib
import dataclasses
import datetime
import enum
import importlib
import json
import os
import sys
import warnings

warnings.simplefilter("ignore")

import zae_limiter
from zae_limiter import Limit, RateLimiter, Repository


class Rollback(Exception):
    pass


def decode(value):
    if isinstance(value, list):
        return [decode(one) for one in value]
    if not isinstance(value, dict):
        return value
    if "$limit" in value:
        return Limit(**{name: decode(one) for name, one in value["$limit"].items()})
    if "$quota" in value:
        fields = {name: decode(one) for name, one in value["$quota"].items()}
        return Limit.quota(fields.pop("name"), fields.pop("amount"), **fields)
    if "$seconds" in value:
        return datetime.timedelta(seconds=value["$seconds"])
    if "$schedule" in value:
        return tuple(zae_limiter.ScheduleEntry(**one) for one in value["$schedule"])
    return {name: decode(one) for name, one in value.items()}


def encode(value):
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: encode(getattr(value, field.name))
            for field in dataclasses.fields(value)
            if not field.name.startswith("_")
        }
    if isinstance(value, enum.Enum):
        return encode(value.value)
    if isinstance(value, dict):
        return {str(name): encode(one) for name, one in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [encode(one) for one in value]
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    return str(value)


class Driver:
    def __init__(self):
        self.repo = None
        self.limiter = None
        self.leases = {}
        self.next = 1

    async def open(self, stack, endpoint, namespace, connect=False, **kwargs):
        how = Repository.connect if connect else Repository.open
        self.repo = await how(
            namespace=namespace, stack=stack, endpoint_url=endpoint, region="us-east-1", **kwargs
        )
        self.limiter = RateLimiter(repository=self.repo)
        return {"version": zae_limiter.__version__}

    async def call(self, on, method, args=(), kwargs=None):
        target = self.repo if on == "repo" else self.limiter
        args = [decode(one) for one in args]
        result = getattr(target, method)(*args, **decode(kwargs or {}))
        return encode(await result if asyncio.iscoroutine(result) else result)

    async def acquire(self, entity, resource, consume, limits=None, **kwargs):
        number = self.next
        self.next += 1
        opened = asyncio.get_running_loop().create_future()
        ended = asyncio.get_running_loop().create_future()

        async def body():
            try:
                given = None if limits is None else decode(limits)
                async with self.limiter.acquire(
                    entity, resource, consume, limits=given, **kwargs
                ) as lease:
                    opened.set_result(lease)
                    if await ended == "rollback":
                        raise Rollback()
            except Rollback:
                pass
            except Exception as error:
                if not opened.done():
                    opened.set_exception(error)
                else:
                    raise

        task = asyncio.create_task(body())
        lease = await opened
        self.leases[number] = (lease, ended, task)
        return {"lease": number}

    async def adjust(self, lease, amounts):
        await self.leases[lease][0].adjust(**amounts)

    async def end(self, lease, how):
        _, ended, task = self.leases.pop(lease)
        ended.set_result(how)
        await task


    async def aggregate(self, table, endpoint, records):
        os.environ["AWS_ENDPOINT_URL"] = endpoint
        aggregator = importlib.import_module("zae_limiter_aggregator.handler")
        aggregator.TABLE_NAME = table
        # Its snapshots of a day and of the first hour of it are one item, and count twice.
        aggregator.SNAPSHOT_WINDOWS = ["hourly"]
        with contextlib.redirect_stdout(sys.stderr):
            return aggregator.handler({"Records": records}, None)["body"]

    async def provision(self, table, endpoint, namespace_id, action, manifest):
        os.environ["AWS_ENDPOINT_URL"] = endpoint
        provisioner = importlib.import_module("zae_limiter_provisioner.handler")
        event = {"table_name": table, "namespace_id": namespace_id}
        with contextlib.redirect_stdout(sys.stderr):
            return provisioner.on_event({**event, "action": action, "manifest": manifest}, None)


async def main():
    driver = Driver()
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=2**24)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)

    async def answer(request):
        number = request.pop("id")
        do = request.pop("do")
        try:
            reply = {"id": number, "result": await getattr(driver, do)(**request)}
        except Exception as error:
            reply = {"id": number, "error": {"type": type(error).__name__, "message": str(error)}}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()

    tasks = set()
    while line := await reader.readline():
        task = asyncio.create_task(answer(json.loads(line)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    if driver.repo is not None:
        await driver.repo.close()


asyncio.run(main())
