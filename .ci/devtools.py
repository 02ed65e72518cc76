"""A headless chromium, spoken to over its DevTools protocol."""

import base64
import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import websocket  # websocket-client

_FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --hide-scrollbars "
    "--disable-background-networking --disable-component-update --disable-sync "
    "--disable-extensions --disable-dev-shm-usage --remote-debugging-port=0 "
    "--remote-allow-origins=* about:blank"
)


def found():
    """The browser's path, or None."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)


class Browser:
    """One tab. What it complains of and asks for while a page loads is kept."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp()
        command = [found(), f"--user-data-dir={self.folder}", *_FLAGS.split()]
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen(command, stdout=quiet, stderr=quiet)
        port, path = self._address()
        self.socket = websocket.create_connection(
            f"ws://127.0.0.1:{port}{path}",
            timeout=60,
            max_size=None,
            enable_multithread=False,
        )
        self.number, self.session, self.events = 0, None, []
        (tab,) = (
            t for t in self("Target.getTargets")["targetInfos"] if t["type"] == "page"
        )
        attached = self("Target.attachToTarget", targetId=tab["targetId"], flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self(f"{domain}.enable")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _address(self):
        """The port and the path that it writes down when it is ready."""
        file = Path(self.folder) / "DevToolsActivePort"
        for _ in range(600):
            if (
                file.exists()
                and len(lines := file.read_text(encoding="utf-8").split()) == 2
            ):
                return lines
            if self.process.poll() is not None:
                raise RuntimeError(f"chromium ended with {self.process.returncode}")
            time.sleep(0.1)
        raise RuntimeError("chromium does not start within a minute")

    def __call__(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.socket.send(json.dumps(message))
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, url):
        """Load a page; what its console says is wrong, and the addresses that it asks for."""
        self.events = []
        self("Page.navigate", url=url)
        while not any(
            event.get("method") == "Page.loadEventFired" for event in self.events
        ):
            self.events.append(json.loads(self.socket.recv()))
        # formulas are drawn after the page has loaded
        self.run("window.MathJax?.startup?.promise?.then(() => 1)")
        return self._problems(), self._addresses()

    def _problems(self):
        problems = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                problems.append(
                    details.get("exception", {}).get("description", details["text"])
                )
            elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
                problems.append(
                    f"{params['entry']['text']} {params['entry'].get('url', '')}"
                )
            elif method == "Runtime.consoleAPICalled" and params["type"] in (
                "error",
                "assert",
            ):
                said = [
                    str(a.get("value", a.get("description"))) for a in params["args"]
                ]
                problems.append(" ".join(said))
        return problems

    def _addresses(self):
        asked = [
            e for e in self.events if e.get("method") == "Network.requestWillBeSent"
        ]
        return [event["params"]["request"]["url"] for event in asked]

    def run(self, script):
        """The value of a script, waited for."""
        result = self(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"]["description"])
        return result["result"].get("value")

    def resize(self, width):
        """The window's width; below 500 that of a telephone."""
        size = {
            "width": width,
            "height": 900,
            "deviceScaleFactor": 1,
            "mobile": width < 500,
        }
        self("Emulation.setDeviceMetricsOverride", **size)

    def media(self, kind="", scheme="light"):
        """Screen ("") or "print", light or dark."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self("Emulation.setEmulatedMedia", media=kind, features=features)

    def press(self, key="Tab", code=9):
        """One key, down and up."""
        for kind in ("keyDown", "keyUp"):
            self(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
            )

    def pdf(self):
        """The page on A4, as bytes."""
        options = {"printBackground": True, "preferCSSPageSize": True}
        return base64.b64decode(self("Page.printToPDF", **options)["data"])
