#!/usr/bin/env python3
"""Reference model for the expected results in this folder: resolves inheritance, overrides, substitution and transitions
exactly as decided in docs/internals/conformance.md and compares with cases.json.  Not product code.  Run: python3 check.py"""
import copy, json, re, sys, xml.etree.ElementTree as ET
LISTS = {"properties", "listeners", "skippable-exception-classes", "retryable-exception-classes", "no-rollback-exception-classes"}
EXEC = {"step", "flow", "split", "decision"}
TRANS = {"next", "end", "fail", "stop"}
SINGLE = {"chunk", "batchlet", "partition", "concurrency", "checkpoint-algorithm", "algorithm", "logicalTX", "collector", "analyzer"}
class StartError(Exception): pass

def key(e):                                   # identity of an entry inside a list element
    if e.tag == "property": return ("property", e.get("name"), e.get("target"))
    if e.tag == "listener": return ("listener", e.get("ref"))
    if e.tag in TRANS: return ("transition", e.get("on"))
    if e.tag in EXEC: return ("exec", e.get("id"))
    return (e.tag, e.get("class"))

def merge_lists(p, c):
    out = ET.Element(c.tag)
    entries = [] if c.get("merge", "true") in ("false", "0") else [copy.deepcopy(x) for x in p]
    for x in c:
        ks = [key(y) for y in entries]
        if key(x) in ks: entries[ks.index(key(x))] = copy.deepcopy(x)
        else: entries.append(copy.deepcopy(x))
    out.extend(entries)
    return out

def combine(p, c):
    """sub-elements of p combined with those of c; c's own attributes only are kept by the caller for the top element"""
    out = ET.Element(c.tag, dict(c.attrib))
    cl, used = list(c), set()
    ctags = {x.tag for x in cl}
    for x in p:
        if x.tag == "chunk" and "batchlet" in ctags or x.tag == "batchlet" and "chunk" in ctags: continue
        if x.tag in TRANS | EXEC:
            m = [y for y in cl if y.tag in (TRANS if x.tag in TRANS else EXEC) and key(y) == key(x)]
        else:
            m = [y for y in cl if y.tag == x.tag]
        if not m:
            n = copy.deepcopy(x); out.append(n); continue
        y = m[0]; used.add(id(y))
        if x.tag in LISTS: out.append(merge_lists(x, y))
        elif x.tag in SINGLE:
            z = combine(x, y)
            for k, v in x.attrib.items(): z.attrib.setdefault(k, v)     # attributes of SUB-elements are combined
            out.append(z)
        else: out.append(copy.deepcopy(y))
    for y in cl:
        if id(y) not in used: out.append(copy.deepcopy(y))
    return out

def inherit(e, reg, job=None, chain=()):
    out = copy.deepcopy(e)
    par = e.get("parent")
    if par is not None:
        if par in chain: raise StartError("inheritance cycle " + par)
        p = next((x for x in (job if job is not None else []) if x.tag == e.tag and x.get("id") == par and x is not e), None)
        if p is None: p = reg.get(par)
        if p is None: raise StartError("no parent " + par)
        if p.tag != e.tag: raise StartError("parent of another kind " + par)
        p = inherit(p, reg, job, chain + (par,))
        out = combine(p, e)
        out.attrib.pop("parent", None)
    j = job if job is not None else (e if e.tag == "job" else None)
    for i, x in enumerate(list(out)):
        if x.tag in ("step", "flow", "split"): out[i] = inherit(x, reg, j, chain)
    for x in out.iter():
        if x.tag in LISTS: x.attrib.pop("merge", None)
    return out

def canon(e):
    kids = [canon(x) for x in e]
    order = {"properties": 0, "listeners": 1}
    lists = e.tag in LISTS
    if not lists: kids.sort(key=lambda k: order.get(k[0], 2))            # stable: keeps execution order
    return (e.tag, tuple(sorted((k, v) for k, v in e.attrib.items() if not (k == "abstract" and v == "false"))), tuple(kids))

class Scope:
    def __init__(s, path, params, system, part=None):
        s.path, s.system = path, system
        s.params, s.sub = params, {}
        for el in path:
            pt = el.find("partition")
            if pt is None or part is None: continue
            for pr in pt.findall("properties/property"):
                raw = pr.get("name"); base, _, n = raw.rpartition(".")
                if n.isdigit() and int(n) == part:
                    s.sub[base] = params[raw] if raw in params else (pr.get("value"))
    def find(s, name, target, stack):
        if name in s.sub: return s.subst(s.sub[name], target, stack, name)
        if name in s.params: return s.params[name]
        if name in s.system: return s.system[name]
        for el in s.path:                                                # outermost first
            for pr in el.findall("properties/property"):
                if pr.get("name") == name and pr.get("target") in (None, target) and id(pr) not in stack:
                    return s.subst(pr.get("value"), pr.get("target") or target, stack | {id(pr)}, name)
        return None
    def subst(s, text, target, stack, who):
        def r(m):
            v = s.find(m.group(1), target, stack)
            if v is None: raise StartError(m.group(1))
            return v
        if re.search(r"\$\{(?![^}]+\})", text): raise StartError("malformed " + text)
        return re.sub(r"\$\{([^}]+)\}", r, text)

def path_to(root, sid):
    def rec(e, p):
        p = p + [e]
        if e.get("id") == sid and e.tag in EXEC: return p
        for x in e:
            if x.tag in EXEC:
                q = rec(x, p)
                if q: return q
    return rec(root, [])

def value(root, params, system, step, art, part, name):
    p = path_to(root, step)
    el = p[-1]
    if art in ("reader", "processor", "writer"): p = p + [el.find("chunk")]; t = art
    elif art == "batchlet": p = p + [el.find("batchlet")]; t = art
    else: t = art
    return Scope(p, params, system, part).find(name, t, frozenset())

def matches(pat, s):
    rx = "".join(".+" if c == "*" else "." if c == "?" else re.escape(c) for c in pat)
    return re.fullmatch(rx, s, re.S) is not None
def spec_key(i_e):
    i, e = i_e; on = e.get("on"); st, q = on.count("*"), on.count("?"); lit = len(on) - st - q
    return (0 if st + q == 0 else 1, -lit, st, -q, i)
def select(el, status):
    for _, e in sorted(((i, e) for i, e in enumerate(el) if e.tag in TRANS), key=spec_key):
        if matches(e.get("on"), status): return e

def run(root, exits, errors, start=None):
    """sequential interpreter for job-level steps, one-step-chain flows and decisions"""
    top = [e for e in root if e.tag in EXEC]
    byid = {e.get("id"): e for e in top}
    cur = byid[start] if start else next(e for e in top if e.tag != "decision" and e.get("abstract") not in ("true", "1"))
    jexit, done = None, []
    while True:
        cid = cur.get("id"); failed = False
        if cur.tag == "flow":
            for s in cur.findall("step"): done.append(s.get("id")); last = exits.get(s.get("id"), "COMPLETED")
            status = last
        else:
            done.append(cid); failed = cid in errors
            status = "FAILED" if failed else exits.get(cid, "COMPLETED")
            if cur.tag == "decision": jexit = status
        t = select(cur, status) if cur.tag in ("step", "decision") else None
        if t is not None and t.tag != "next":
            b = {"end": "COMPLETED", "fail": "FAILED", "stop": "STOPPED"}[t.tag]
            return b, t.get("exit-status") or jexit or b, done, (t.get("restart") or cid) if t.tag == "stop" else None
        nxt = t.get("to") if t is not None else (None if failed else cur.get("next"))
        if t is None and (failed or cur.tag == "decision" or (cur.find("next") is not None)): return "FAILED", jexit or "FAILED", done, None
        if nxt is None: return "COMPLETED", jexit or "COMPLETED", done, None
        cur = byid[nxt]

def main():
    bad = n = 0
    def chk(what, got, want):
        nonlocal bad, n; n += 1
        if got != want: bad += 1; print("MISMATCH", what, "got", got, "want", want)
    for c in json.load(open("cases.json"))["cases"]:
        reg = {}
        for f in c["files"]:
            r = ET.parse(f).getroot(); assert r.get("id") not in reg, "duplicate top-level id"; reg[r.get("id")] = r
        eff = inherit(reg[c["job"]], reg)
        if "effective" in c: chk(c["id"] + " effective", canon(eff), canon(ET.parse(c["effective"]).getroot()))
        for s, a, p, nm, want in c["values"]: chk(f'{c["id"]} {s}/{a}[{p}].{nm}', value(eff, c["params"], c["system"], s, a, p, nm), want)
        for k, v in c.get("job_properties", {}).items(): chk(c["id"] + " job " + k, Scope([eff], c["params"], c["system"]).find(k, None, frozenset()), v)
        for k, v in c.get("partitions", {}).items(): chk(c["id"] + " partitions", int(path_to(eff, k)[-1].find("partition").get("instances", "1")), v)
        if "start_error" in c:
            try: value(eff, c["params"], c["system"], "Step1", "batchlet", None, "outfile"); got = None
            except StartError as x: got = str(x)
            chk(c["id"] + " start error", got, c["start_error"])
        for rn in c.get("runs", []):
            b, x, d, rs = run(eff, rn.get("exits", {}), rn.get("errors", []))
            chk(c["id"] + " job", [b, x], rn["job"])
            if "executed" in rn: chk(c["id"] + " executed", d, rn["executed"])
            if "restart" in rn:
                r2 = rn["restart"]; b, x, d, _ = run(eff, r2.get("exits", {}), [], rs)
                chk(c["id"] + " restart", [b, x, d], r2["job"] + [r2["executed"]])
    print(n, "checks,", bad, "mismatches")
    return bad
sys.exit(1 if main() else 0)
