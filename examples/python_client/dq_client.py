"""A client of the JSON API of dq, with the standard library alone.

    DQ_URL=http://127.0.0.1:8080 DQ_DASHBOARD_TOKEN=.. python3 dq_client.py

prints what it does with a few jobs of the topic `python-example`.
"""

import json
import os
import urllib.error
import urllib.parse
import urllib.request


class DqError(Exception):
    """An answer that is not 2xx. `status` 503 means that the store may have done it: repeat an add with the same id."""

    def __init__(self, status, error):
        super().__init__(f"{status}: {error}")
        self.status = status


class Dq:
    def __init__(self, url, token=None, timeout=15):
        self.url = url.rstrip("/") + "/api/v1"
        self.token = token
        self.timeout = timeout

    def _call(self, method, path, body=None, **query):
        query = {name: value for name, value in query.items() if value is not None}
        url = self.url + path + ("?" + urllib.parse.urlencode(query) if query else "")
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        data = None if method == "GET" else json.dumps(body or {}).encode()
        request = urllib.request.Request(url, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace")
            try:
                text = json.loads(text)["error"]
            except (ValueError, KeyError, TypeError):
                pass
            raise DqError(error.code, text) from None

    @staticmethod
    def _topic(topic, *more):
        return "/topics/" + "/".join(urllib.parse.quote(part, safe="") for part in (topic, *more))

    def add(self, topic, payload, **options):
        """Adds a job. Options: id, after, at, on_duplicate, expires_after, retain, retry, headers."""
        return self._call("POST", self._topic(topic, "jobs"), {"payload": payload, **options})

    def topics(self):
        """Yields all topics, page by page."""
        cursor = None
        while True:
            page = self._call("GET", "/topics", cursor=cursor)
            yield from page["topics"]
            cursor = page["next"]
            if cursor is None:
                return

    def jobs(self, topic, state="delayed", **conditions):
        """Yields the jobs of one state that match, page by page."""
        after_at = after_id = None
        while True:
            page = self._call("GET", self._topic(topic, "jobs"), state=state, after_at=after_at, after_id=after_id, **conditions)
            yield from page["jobs"]
            if page["next"] is None:
                return
            after_at, after_id = page["next"]

    def job(self, topic, id):
        return self._call("GET", self._topic(topic, "jobs", id))

    def why(self, topic, id):
        return self._call("GET", self._topic(topic, "jobs", id, "why"))["text"]

    def timeline(self, topic):
        return self._call("GET", self._topic(topic, "timeline"))

    def run_now(self, topic, id):
        return self._call("POST", self._topic(topic, "jobs", id, "run-now"))

    def reschedule(self, topic, id, when):
        return self._call("POST", self._topic(topic, "jobs", id, "reschedule"), {"when": when})

    def requeue(self, topic, id):
        return self._call("POST", self._topic(topic, "jobs", id, "requeue"))

    def delete(self, topic, id):
        return self._call("DELETE", self._topic(topic, "jobs", id))

    def pause(self, topic, reason, lasting=None):
        return self._call("POST", self._topic(topic, "pause"), {"reason": reason, "lasting": lasting})

    def resume(self, topic):
        return self._call("POST", self._topic(topic, "resume"))

    def bulk(self, topic, action, state, **conditions):
        """Changes all jobs that match, step by step; returns how many."""
        changed, cursor = 0, None
        while True:
            step = {"action": action, "state": state, "cursor": cursor, **conditions}
            done = self._call("POST", self._topic(topic, "bulk"), step)
            changed += done["changed"]
            cursor = done["next"]
            if cursor is None:
                return changed


def main():
    dq = Dq(os.environ["DQ_URL"], os.environ.get("DQ_DASHBOARD_TOKEN"))
    topic = "python-example"
    added = [dq.add(topic, {"order": n}, id=f"order/{n}", after="1h", headers=[["from", "python"]]) for n in range(3)]
    print("added", [job["id"] for job in added])
    try:
        dq.add(topic, {"order": 0}, id="order/0")
    except DqError as error:
        print("again:", error.status)
    print("kept:", dq.add(topic, {}, id="order/0", on_duplicate="keep")["how"])
    print("waiting:", next(seen["delayed"] for seen in dq.topics() if seen["topic"] == topic))
    print("found:", [job["id"] for job in dq.jobs(topic, header="from=python")])
    print("falls due:", sum(bucket["jobs"] for bucket in dq.timeline(topic)["hours"]))
    print("paused:", dq.pause(topic, "a test", lasting="1h")["changed"])
    print("resumed:", dq.resume(topic)["changed"])
    print("rescheduled:", dq.reschedule(topic, "order/0", "2h")["changed"])
    print("why:", len(dq.why(topic, "order/0")) > 0)
    print("deleted:", dq.delete(topic, "order/0")["changed"], dq.bulk(topic, "delete", "delayed", id_prefix="order/"))


if __name__ == "__main__":
    main()
