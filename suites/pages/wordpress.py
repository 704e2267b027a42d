"""Walks WordPress: install, write, comment, search, sort out, look after users, export.

Arguments: the site's address and the database's port. Rows that WordPress sorts by time get times
of their own, since it leaves open how it sorts those of one second.
"""

import json
import re
import sys

from browser import Browser

TEXT = "h\u00e9llo w\u00f6rld \U0001f600 & 'quotes' \"double\" back\\slash 100% \u65e5\u672c\u8a9e"


def install(browser):
    page = browser.show("install", browser.fetch("/wp-admin/install.php"))
    if any("Select a default language" in form.name for form in page.forms):
        page = browser.submit(page, "language")
    page = browser.submit(page, "weblog_title", {
        "weblog_title": "Walk's blog " + TEXT, "user_name": "admin", "admin_email": "a@example.org",
        "admin_password": "secret-pw-1", "admin_password2": "secret-pw-1", "pw_weak": "1",
        "blog_public": "1",
    })
    browser.show("installed", page)
    browser.show("installed already", browser.fetch("/wp-admin/install.php"))


def log_in(browser, name, password):
    page = browser.fetch("/wp-login.php")
    return browser.submit(page, "loginform", {"log": name, "pwd": password})


class Rest:
    """The interface that the block editor uses."""

    def __init__(self, browser):
        self.browser = browser
        page = browser.fetch("/wp-admin/post-new.php")
        self.nonce = page.found(r'createNonceMiddleware\( "(\w+)"')

    def call(self, name, method, route, values=None):
        headers = {
            "X-WP-Nonce": self.nonce, "Content-Type": "application/json",
            "X-HTTP-Method-Override": method,
        }
        path, _, query = route.partition("?")
        url = f"/index.php?rest_route=/wp/v2/{path}" + ("&" + query if query else "")
        body = None if method == "GET" else json.dumps(values or {}).encode()
        answer = self.browser.fetch(url, headers=headers, body=body)
        # One value a line, so that a difference is short.
        answer.lines = lines_of_json(answer.body)
        self.browser.show(name, answer)
        return json.loads(answer.body)


def lines_of_json(text):
    try:
        value = json.loads(text)
    except ValueError:
        return text.splitlines()
    return re.sub(r"_wpnonce=\w+", "", json.dumps(value, indent=1, ensure_ascii=False)).splitlines()


def write_posts(browser):
    rest = Rest(browser)
    for name, parent in (("News", None), ("\u00dcber uns", None), ("Sport", "News")):
        page = browser.fetch("/wp-admin/edit-tags.php?taxonomy=category")
        chosen = {"tag-name": name, "slug": "", "description": TEXT}
        if parent:
            chosen["parent"] = page.found(rf'value="(\d+)">{parent}<')
        browser.show(f"category {name}", browser.submit(page, "addtag", chosen))
    posts = []
    for number in range(1, 13):
        posts.append(rest.call(f"post {number}", "POST", "posts", {
            "title": f"Post {number} {TEXT}", "status": "publish",
            "content": f"<!-- wp:paragraph --><p>Word{number} {TEXT}</p><!-- /wp:paragraph -->",
            "excerpt": f"excerpt {number}", "date": f"2024-{number:02}-03T10:00:00",
            "categories": [2 + number % 3], "meta": {},
        })["id"])
    for name in ("red", "gr\u00fcn", "blau"):
        rest.call(f"tag {name}", "POST", "tags", {"name": name})
    rest.call("tags of a post", "POST", f"posts/{posts[0]}", {"tags": [5, 6], "sticky": True})
    rest.call("revised", "POST", f"posts/{posts[1]}", {"content": "<p>revised " + TEXT + "</p>"})
    rest.call("revisions", "GET", f"posts/{posts[1]}/revisions")
    rest.call("autosave", "POST", f"posts/{posts[1]}/autosaves", {"content": "<p>saved</p>"})
    rest.call("draft", "POST", "posts", {"title": "Draft", "date": "2024-02-01T00:00:00"})
    rest.call("page", "POST", "pages", {
        "title": "A page", "content": TEXT, "status": "publish", "date": "2024-01-01T00:00:00"})
    rest.call("searched", "GET", "posts?search=Word7&orderby=relevance")
    rest.call("by category", "GET", "posts?categories=3&orderby=title&order=asc&per_page=3&page=2")
    rest.call("both searched", "GET", "search?search=Post&per_page=4")
    rest.call("a wrong id", "GET", "posts/99999")
    return posts


def read_blog(browser, posts):
    show, fetch = browser.show, browser.fetch
    show("front", fetch("/"))
    show("front, second page", fetch("/?paged=2"))
    show("a post", fetch(f"/?p={posts[0]}"))
    show("a category", fetch("/?cat=3"))
    show("a tag", fetch("/?tag=red"))
    show("a month", fetch("/?m=202405"))
    show("an author", fetch("/?author=1"))
    show("searched", fetch("/?s=w%C3%B6rld+Word3"))
    show("searched in vain", fetch("/?s=nothing+like+this"))
    show("searched for signs", fetch("/?s=%27%25_%5C"))
    show("not there", fetch("/?p=99999"))
    for feed in ("rss2", "atom", "comments-rss2"):
        show(f"feed {feed}", fetch(f"/?feed={feed}"))
    show("site map", fetch("/?sitemap=posts&sitemap-subtype=post&paged=1"))


def comment(browser, guest, posts):
    page = guest.fetch(f"/?p={posts[2]}")
    answer = guest.submit(page, "comment", {
        "comment": "A guest says " + TEXT, "author": "Guest \u00fc", "email": "g@example.org",
        "url": "http://example.org/"})
    guest.show("a guest's comment", answer)
    page = browser.fetch(f"/?p={posts[3]}")
    answer = browser.submit(page, "comment", {"comment": "The author says " + TEXT})
    browser.show("the author's comment", answer)
    rest = Rest(browser)
    for number in (2, 3):
        rest.call(f"comment {number} dated", "POST", f"comments/{number}", {
            "date": f"2024-11-0{number}T10:00:00"})
    page = browser.show("comments", browser.fetch("/wp-admin/edit-comments.php"))
    awaiting = re.findall(r"comment\.php\?c=(\d+)&#038;action=approvecomment[^'\"]*", page.body)
    for number in awaiting[:1]:
        link = re.search(rf"comment\.php\?c={number}&#038;action=approvecomment[^'\"]*", page.body)
        browser.fetch("/wp-admin/" + link.group(0).replace("&#038;", "&"))
    browser.show("approved", browser.fetch("/wp-admin/edit-comments.php?comment_status=approved"))
    page = browser.fetch("/wp-admin/comment.php?action=editcomment&c=2")
    browser.show("editing a comment", page)
    browser.show("edited", browser.submit(page, "content", {"content": "edited " + TEXT}))
    browser.show("comments searched", browser.fetch("/wp-admin/edit-comments.php?s=edited"))
    browser.show("the post", browser.fetch(f"/?p={posts[2]}"))


def sort_posts(browser, posts):
    show, fetch = browser.show, browser.fetch
    for name, query in (
        ("posts", ""), ("by title", "?orderby=title&order=asc"), ("a category", "?cat=3"),
        ("drafts", "?post_status=draft&post_type=post"), ("a month", "?m=202403"),
        ("searched", "?s=Word9"), ("by comments", "?orderby=comment_count&order=desc&m=202403"),
        ("pages", "?post_type=page&orderby=title&order=asc"),
    ):
        show(f"list of posts: {name}", fetch("/wp-admin/edit.php" + query))
    # The rest of the editor's page is a script.
    show("editor", fetch(f"/wp-admin/post.php?post={posts[4]}&action=edit"))
    page = fetch("/wp-admin/edit.php")
    page = browser.submit(page, "posts-filter", {
        "action": "trash", "post[]": [str(posts[5]), str(posts[6])]})
    show("two in the trash", page)
    show("trash", fetch("/wp-admin/edit.php?post_status=trash&post_type=post"))
    page = fetch("/wp-admin/edit.php?post_status=trash&post_type=post")
    show("one back", browser.submit(page, "posts-filter", {
        "action": "untrash", "post[]": str(posts[5])}))
    page = fetch("/wp-admin/edit.php?post_status=trash&post_type=post")
    show("emptied", browser.submit(page, "posts-filter", {"action": "-1"}, "delete_all"))


def look_after(browser):
    show, fetch = browser.show, browser.fetch
    page = fetch("/wp-admin/user-new.php")
    page = browser.submit(page, "createuser", {
        "user_login": "writer", "email": "w@example.org", "first_name": "W\u00e4", "last_name": "R",
        "pass1": "secret-pw-2", "pass2": "secret-pw-2", "pw_weak": "on", "role": "author"})
    show("new user", page)
    page = fetch("/wp-admin/user-edit.php?user_id=2")
    show("editing a user", page)
    show("edited user", browser.submit(page, "your-profile", {
        "first_name": "\u00c4nne", "description": TEXT, "role": "editor", "nickname": "nick"}))
    show("users", fetch("/wp-admin/users.php?orderby=login&order=asc"))
    show("users searched", fetch("/wp-admin/users.php?s=wri%2A"))
    show("users of a role", fetch("/wp-admin/users.php?role=editor"))
    page = fetch("/wp-admin/options-general.php")
    show("options", browser.submit(page, "blogname", {
        "blogname": "Renamed " + TEXT, "timezone_string": "Europe/Berlin"}))
    page = fetch("/wp-admin/options-reading.php")
    show("reading", browser.submit(page, "posts_per_page", {"posts_per_page": "5"}))
    page = fetch("/wp-admin/edit-tags.php?taxonomy=post_tag&orderby=name&order=asc")
    show("tags", page)
    page = fetch("/wp-admin/edit-tags.php?taxonomy=category")
    show("category deleted", browser.submit(page, "delete_tags[]", {
        "action": "delete", "delete_tags[]": "4"}))
    for name, path in (
        ("dashboard", "index.php"), ("media", "upload.php?mode=list"), ("themes", "themes.php"),
        ("plugins", "plugins.php"), ("tools", "tools.php"), ("export", "export.php"),
        ("all options", "options.php"), ("privacy", "options-privacy.php"),
        ("exported", "export.php?download=true&content=all"),
    ):
        show(name, fetch("/wp-admin/" + path))
    page = fetch("/wp-admin/users.php")
    page = browser.submit(page, "users[]", {"action": "delete", "users[]": "2"})
    show("deleting a user", page)
    show("user deleted", browser.submit(page, "updateusers", {"delete_option": "delete"}))


class Walk(Browser):
    """Leaves out what varies with the moment: options of the last minute, parts of times."""

    MOMENTARY = re.compile(r"^\d\d$|(?i:\[(recently_edited|cron|\w*_(key|salt|lifespan|timeout\w*)"
                           r"|\w*last_checked|\w*transient\w*|db_upgraded)=)")

    def show(self, name, page, keep=None):
        return super().show(name, page, keep or (lambda line: not self.MOMENTARY.search(line)))


def main():
    site, port = sys.argv[1], int(sys.argv[2])
    browser, guest = Walk(site, port), Walk(site, port)
    install(browser)
    guest.show("wrong password", log_in(guest, "admin", "wrong"))
    browser.show("logged in", log_in(browser, "admin", "secret-pw-1"))
    posts = write_posts(browser)
    read_blog(guest, posts)
    comment(browser, guest, posts)
    sort_posts(browser, posts)
    look_after(browser)
    guest.show("front at the end", guest.fetch("/"))
    guest.show("lost password", guest.submit(
        guest.fetch("/wp-login.php?action=lostpassword"), "user_login", {"user_login": "admin"}))


main()
