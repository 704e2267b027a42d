"""What the walks share: a browser that keeps cookies and fills in forms, and the text of a page.

The text has a line for each block of a page, with the values of its fields. What changes from run
to run stands in it as a word in capitals: times, nonces, the server's port and version.
"""

import http.cookiejar
import os
import re
import sys
import urllib.error
import urllib.parse
import urllib.request
from html.parser import HTMLParser

# Longer than any page takes on a loaded machine. It only detects a hang.
PAGE_SECONDS_MAX = 120

INLINE = {
    "a", "abbr", "b", "bdi", "bdo", "cite", "code", "em", "font", "i", "img", "ins", "kbd", "label",
    "q", "s", "small", "span", "strong", "sub", "sup", "u", "wbr",
}
SILENT = {"script", "style", "template", "noscript", "svg"}

# Fields with secrets and parts of the present time.
UNSHOWN = re.compile(r"nonce|token|^_wp|^_inline_edit$|referer|_key$|^hash$|stamp$|^pwd$|^pass"
                     r"|^((cur|hidden)_)?(aa|mm|jj|hh|mn|ss)$")

MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
# Behind some moments stands the format that they are written in, without a space.
VARYING = [
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:?\d\d)?", "TIME"),
    (r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d( [+-]\d{4})?", "TIME"),
    (r"\b\d{4}/\d\d/\d\d\b", "DATE"),
    (r"\b\d{4}-\d\d-\d\d(?=\b|Y-m-d)", "DATE"),
    (r"\b\d\d/\d\d/\d{4}(?=\b|[md]/[md]/Y)", "DATE"),
    (rf"\b({MONTHS}) \d{{1,2}}, \d{{4}}", "DATE"),
    (r"\b\d{1,2}:\d\d(:\d\d)?( ?([ap]m|[AP]M))?(?=\b|[gH]:i)", "CLOCK"),
    (r"\b\d+ (second|sec|minute|min)s?\b", "SPAN"),
    (r"\b\d+\.\d+ s\b", "SPAN"),
    (r"(?i)(nonce[\w-]*|token|_ajax_fetch_list_nonce|key)=[^&\s]+", r"\1=NONCE"),
    (r"\b\d+(\.\d+)+-MariaDB[\w.+~:-]*", "VERSION"),
    (r"\b10\.11\.\d+\b", "VERSION"),
]


def normalised(text, port):
    """The text without what changes from run to run."""
    text = text.replace(f"127.0.0.1:{port}", "SERVER").replace(f"127.0.0.1%3A{port}", "SERVER")
    text = text.replace(os.environ["PAGES_ROOT"], "ROOT")
    for pattern, word in VARYING:
        text = re.sub(pattern, word, text)
    return text


class Form:
    """A form of a page, with the values that it would send."""

    def __init__(self, attributes):
        self.action = attributes.get("action") or ""
        self.method = (attributes.get("method") or "get").lower()
        self.name = attributes.get("id") or attributes.get("name") or ""
        self.fields = []
        self.buttons = []
        # Also those of boxes that are not ticked.
        self.names = set()

    def value(self, name):
        return dict(self.fields).get(name)

    def has(self, name):
        return name in self.names


class Reader(HTMLParser):
    """Reads lines and forms out of HTML."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.lines = [""]
        self.forms = []
        self.title = ""
        self.silent = 0
        self.form = None
        self.select = None
        self.option = None
        self.text_area = None

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag in SILENT:
            self.silent += 1
        if tag not in INLINE:
            self.break_line()
        if tag == "form":
            self.form = Form(attributes)
            self.forms.append(self.form)
        elif tag in ("input", "button"):
            self.add_input(tag, attributes)
        elif tag == "select":
            self.select = (attributes.get("name"), [])
        elif tag == "option" and self.select:
            self.option = [attributes.get("value"), "", "selected" in attributes]
            self.select[1].append(self.option)
        elif tag == "textarea":
            self.text_area = (attributes.get("name"), [])

    def add_input(self, tag, attributes):
        name, value = attributes.get("name"), attributes.get("value") or ""
        kind = (attributes.get("type") or ("submit" if tag == "button" else "text")).lower()
        if not name or "disabled" in attributes:
            return
        if self.form:
            self.form.names.add(name)
        if kind in ("submit", "button", "image", "reset"):
            if self.form:
                self.form.buttons.append((name, value))
            return
        if kind in ("checkbox", "radio"):
            if "checked" not in attributes:
                return
            value = attributes.get("value") or "on"
        if kind == "file":
            return
        self.add_field(name, value)

    def add_field(self, name, value):
        if self.form:
            self.form.names.add(name)
            self.form.fields.append((name, value))
        if not UNSHOWN.search(name):
            self.lines.append(f"[{name}={value}]")
            self.lines.append("")

    def handle_endtag(self, tag):
        if tag in SILENT and 0 < self.silent:
            self.silent -= 1
        if tag == "select" and self.select:
            self.close_select()
        elif tag == "option":
            self.option = None
        elif tag == "textarea" and self.text_area:
            name, parts = self.text_area
            self.text_area = None
            if name:
                self.add_field(name, "".join(parts).removeprefix("\n"))
        elif tag == "form":
            self.form = None
        if tag not in INLINE:
            self.break_line()

    def close_select(self):
        name, options = self.select
        self.select = None
        values = [text if value is None else value for value, text, _ in options]
        chosen = [value for value, option in zip(values, options) if option[2]] or values[:1]
        if name:
            for value in chosen:
                self.add_field(name, value)
            # A list of months or of time zones tells nothing of the database.
            if len(values) <= 40:
                self.lines.append("(" + " | ".join(text.strip() for _, text, _ in options) + ")")
                self.lines.append("")

    def handle_data(self, data):
        if self.text_area:
            self.text_area[1].append(data)
        elif self.select:
            if self.option:
                self.option[1] += data
        elif not self.silent:
            self.lines[-1] += data

    def break_line(self):
        if self.lines[-1]:
            self.lines.append("")


class Page:
    """An answer: its address, its text and its forms."""

    def __init__(self, url, status, body):
        self.url, self.status, self.body = url, status, body
        reader = Reader()
        reader.feed(body)
        reader.close()
        self.forms = reader.forms
        lines = (re.sub(r"\s+", " ", line).strip() for line in reader.lines)
        self.lines = [line for line in lines if line]

    def form(self, name):
        """The first form that has a field or a button of this name, or is called so."""
        for form in self.forms:
            if form.name == name or form.has(name):
                return form
        raise LookupError(f"{self.url}: no form has {name}; the page says {self.lines[:40]}")

    def found(self, pattern):
        """What the pattern's first group matches in the page's source."""
        match = re.search(pattern, self.body)
        if not match:
            raise LookupError(f"{self.url}: no {pattern}; the page says {self.lines[:40]}")
        return match.group(1)


class Browser:
    """Walks pages and prints them: a line `== name`, then the page's lines."""

    def __init__(self, site, database_port):
        self.site = site
        self.port = database_port
        jar = http.cookiejar.CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))

    def fetch(self, path, fields=None, headers=None, body=None):
        url = urllib.parse.urljoin(self.site, path)
        data = body
        if fields is not None:
            data = urllib.parse.urlencode(fields).encode()
        request = urllib.request.Request(url, data=data, headers=headers or {})
        try:
            answer = self.opener.open(request, timeout=PAGE_SECONDS_MAX)
        except urllib.error.HTTPError as error:
            answer = error
        text = answer.read().decode("utf-8", "replace")
        return Page(answer.url, answer.status, text)

    def submit(self, page, form_name, changes=None, button=None):
        """Sends a form with some of its fields changed; a value of None leaves a field out."""
        form = page.form(form_name)
        changes = dict(changes or {})
        fields = []
        for name, value in form.fields:
            if name in changes:
                continue
            fields.append((name, value))
        for name, value in changes.items():
            for one in value if isinstance(value, list) else [value]:
                if one is not None:
                    fields.append((name, one))
        if button:
            fields.append((button, dict(form.buttons).get(button, "1")))
        action = urllib.parse.urljoin(page.url, form.action or page.url)
        if form.method == "get":
            action = action.split("?")[0] + "?" + urllib.parse.urlencode(fields)
            return self.fetch(action)
        return self.fetch(action, fields)

    def show(self, name, page, keep=None):
        """Prints a page; `keep` chooses among its lines."""
        port = urllib.parse.urlparse(self.site).port
        print(f"== {name}: {page.status}")
        for line in page.lines:
            line = normalised(line.replace(f"127.0.0.1:{port}", "SITE"), self.port)
            if keep is None or keep(line):
                print(line)
        sys.stdout.flush()
        return page
