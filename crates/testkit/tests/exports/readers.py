"""Reads exports as others would, with their own libraries. Usage: readers.py FORMAT FILE; prints what it found as JSON."""

import base64
import json
import sys


def ocsf(text):
    from ocsf.events.application.api import APIActivity
    from ocsf.events.application.application_lifecycle import ApplicationLifecycle
    from ocsf.events.base import BaseEvent
    from ocsf.events.findings.detection import DetectionFinding as OtherFinding
    from ocsf.events.system.filesystem import FileSystemActivity
    from ocsf.events.system.process import ProcessActivity
    from py_ocsf_models.events.findings.detection_finding import DetectionFinding

    classes = {0: [BaseEvent], 1001: [FileSystemActivity], 1007: [ProcessActivity], 6002: [ApplicationLifecycle],
               6003: [APIActivity], 2004: [DetectionFinding, OtherFinding]}
    found = {}
    for line in text.splitlines():
        event = json.loads(line)
        for model in classes[event["class_uid"]]:
            read = model.model_validate(event)
            assert int(getattr(read.severity_id, "value", read.severity_id)) == event["severity_id"]
            type_uid = getattr(read.type_uid, "value", read.type_uid)
            assert type_uid == event["type_uid"], (type_uid, event["type_uid"])
        found[str(event["class_uid"])] = found.get(str(event["class_uid"]), 0) + 1
    return found


def cloudevents(text):
    from cloudevents.core.formats.json import JSONFormat
    from cloudevents.core.v1.event import CloudEvent

    found, ids = {}, set()
    for line in text.splitlines():
        event = JSONFormat().read(CloudEvent, line)
        assert event.get_specversion() == "1.0"
        ids.add((event.get_source(), event.get_id()))
        assert event.get_data()["n"] == int(event.get_id().split("/")[1])
        found[event.get_type()] = found.get(event.get_type(), 0) + 1
    assert len(ids) == sum(found.values()), "an id is there twice"
    return found


def syslog(text):
    from syslog_rfc5424_parser import SyslogMessage

    found = {}
    for line in text.splitlines():
        message = SyslogMessage.parse(line)
        assert message.appname == "belljar" and message.facility.name == "audit", message.facility
        assert message.sd["belljar@32473"]["type"] == message.msgid
        assert message.timestamp is not None and message.msg
        found[message.severity.name] = found.get(message.severity.name, 0) + 1
    return found


def otlp(text):
    from google.protobuf import json_format
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    found = {}
    for line in text.splitlines():
        data = json.loads(line)
        # In OTLP ids are hexadecimal, where protobuf's own JSON has base64.
        for span in (s for r in data["resourceSpans"] for c in r["scopeSpans"] for s in c["spans"]):
            for name in ("traceId", "spanId", "parentSpanId"):
                if name in span:
                    span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
        request = json_format.ParseDict(data, ExportTraceServiceRequest())
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                roots = {s.span_id for s in scope.spans if not s.parent_span_id}
                for span in scope.spans:
                    assert len(span.trace_id) == 16 and len(span.span_id) == 8
                    assert span.start_time_unix_nano <= span.end_time_unix_nano
                    assert not span.parent_span_id or span.parent_span_id in roots
                    found[span.name] = found.get(span.name, 0) + 1
                    for event in span.events:
                        found["event " + event.name] = found.get("event " + event.name, 0) + 1
                    for attribute in span.attributes:
                        if attribute.key == "gen_ai.operation.name":
                            assert attribute.value.string_value == "execute_tool"
    return found


def prometheus(text):
    from prometheus_client.parser import text_string_to_metric_families

    found = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation and family.type in ("counter", "gauge", "histogram"), family
        for sample in family.samples:
            labels = ",".join(sample.labels[name] for name in sorted(sample.labels))
            found[sample.name + ("{" + labels + "}" if labels else "")] = sample.value
    return found


if __name__ == "__main__":
    with open(sys.argv[2], encoding="utf-8", newline="") as file:
        print(json.dumps(globals()[sys.argv[1]](file.read())))
