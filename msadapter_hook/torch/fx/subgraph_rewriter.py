"""torch.fx.subgraph_rewriter: replacing every occurrence of a pattern in a graph."""

import copy
from typing import NamedTuple

from ..nn import Module
from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule, _assign_attr, _get_attr
from .node import Node, map_arg

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """Where a pattern was found. Source: PyTorch, torch.fx.subgraph_rewriter.Match."""

    anchor: Node
    nodes_map: dict


class ReplacedPatterns:
    """A match, and the nodes put in its place. Source: PyTorch, torch.fx.subgraph_rewriter.ReplacedPatterns."""

    def __init__(self, anchor, nodes_map, replacements):
        self.anchor, self.nodes_map, self.replacements = anchor, nodes_map, replacements


class InternalMatch:
    """What filters see of a match: `nodes_map`, `anchors`, `returning_nodes`, `placeholder_nodes`."""

    def __init__(self, anchors, nodes_map, returning, placeholders):
        self.anchors, self.nodes_map = anchors, nodes_map
        self.returning_nodes, self.placeholder_nodes = returning, placeholders


def _same(pattern, node, found, gm, ignore_literals=False):
    """Whether the pattern's node fits `node`, with what it uses; fills `found`."""
    if not isinstance(pattern, Node):
        return not isinstance(node, Node) and (ignore_literals or (type(pattern) is type(node) and pattern == node))
    if pattern in found:
        return found[pattern] is node
    if pattern.op == "placeholder":
        found[pattern] = node
        return True
    if not isinstance(node, Node) or pattern.op != node.op:
        return False
    if pattern.op in ("call_function", "call_method") and pattern.target != node.target:
        return False
    if pattern.op in ("call_module", "get_attr") and not _same_attribute(pattern, node, gm):
        return False
    found[pattern] = node
    return _same_tree((pattern.args, pattern.kwargs), (node.args, node.kwargs), found, gm, ignore_literals)


def _same_attribute(pattern, node, gm):
    if pattern.target == node.target:
        return True
    owner = pattern.graph.owning_module
    try:
        return type(_get_attr(owner, pattern.target)) is type(_get_attr(gm, node.target)) and pattern.op == "call_module"
    except AttributeError:
        return False


def _same_tree(a, b, found, gm, ignore_literals):
    if isinstance(a, (tuple, list)):
        return isinstance(b, (tuple, list)) and len(a) == len(b) and all(
            _same_tree(x, y, found, gm, ignore_literals) for x, y in zip(a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and set(a) == set(b) and all(_same_tree(a[k], b[k], found, gm, ignore_literals) for k in a)
    if isinstance(a, slice):
        return isinstance(b, slice) and _same_tree((a.start, a.stop, a.step), (b.start, b.stop, b.step), found, gm, ignore_literals)
    return _same(a, b, found, gm, ignore_literals)


def _matches(gm, pattern, ignore_literals):
    """Matches of the pattern that do not overlap, from the end of the graph to its start."""
    output = next(n for n in pattern.nodes if n.op == "output")
    results = []
    map_arg(output.args[0], lambda n: results.append(n) or n)
    inner = [n for n in pattern.nodes if n.op not in ("placeholder", "output")]
    placeholders = [n for n in pattern.nodes if n.op == "placeholder"]
    if not results or not inner:
        raise RuntimeError("replace_pattern: the pattern has no step to look for")
    taken, chosen = set(), []
    for anchor in reversed(gm.graph.nodes):
        found = {}
        if anchor.op in ("placeholder", "output") or not _same(results[0], anchor, found, gm, ignore_literals):
            continue
        if not all(_find_rest(r, found, gm, ignore_literals) for r in results[1:]):
            continue
        inside = {found[n] for n in inner if n in found}
        if len(inside) < len([n for n in inner if n in found]) or inside & taken:
            continue
        # what is inside may be used outside only where it is a result
        shown = {found[r] for r in results}
        if any(user not in inside for n in inside - shown for user in n.users):
            continue
        taken |= inside
        chosen.append(InternalMatch([anchor], found, [found[r] for r in results], [found.get(p) for p in placeholders]))
    return chosen[::-1], inner, placeholders


def _find_rest(result, found, gm, ignore_literals):
    """A further result of the pattern: the first node that fits with what is known."""
    if result in found:
        return True
    for node in gm.graph.nodes:
        trial = dict(found)
        if _same(result, node, trial, gm, ignore_literals):
            found.update(trial)
            return True
    return False


def _graph_of(thing):
    if isinstance(thing, GraphModule):
        return thing.graph
    if isinstance(thing, Graph):
        return thing
    return symbolic_trace(thing).graph


def replace_pattern(gm, pattern, replacement):
    """Put `replacement` in the place of every occurrence of `pattern` (functions, modules or graphs with the same inputs); gives
    the Matches. Source: PyTorch, torch.fx.replace_pattern."""
    return [Match(m.anchor, m.nodes_map) for m in replace_pattern_with_filters(gm, pattern, replacement)]


def replace_pattern_with_filters(gm, pattern, replacement=None, match_filters=None, ignore_literals=False,
                                 replacement_callback=None,
                                 node_name_match=""):
    """replace_pattern where each filter `f(match, graph, pattern_graph)` agrees. Source: PyTorch, replace_pattern_with_filters."""
    pattern_graph = _graph_of(pattern)
    found, inner, placeholders = _matches(gm, pattern_graph, ignore_literals)
    replaced = []
    stand_in = {}  # results that earlier replacements have taken out
    for match in found:
        if match_filters and not all(f(match, gm.graph, pattern_graph) for f in match_filters):
            continue
        chosen = replacement_callback(match, gm.graph, pattern_graph) if replacement_callback else replacement
        graph = _graph_of(chosen)
        inputs = [n for n in graph.nodes if n.op == "placeholder"]
        values = {p: stand_in.get(match.nodes_map.get(q), match.nodes_map.get(q)) for p, q in zip(inputs, placeholders)}
        inside = {match.nodes_map[n] for n in inner if n in match.nodes_map}
        first = min(match.returning_nodes,
                    key=lambda n: n._position()) if len(match.returning_nodes) > 1 else match.returning_nodes[0]
        last_input = [n for n in values.values() if isinstance(n, Node)]
        before = set(gm.graph.nodes)
        place = max([first, *[n.next for n in last_input if n not in inside]], key=lambda n: n._position()) if last_input else first
        with gm.graph.inserting_before(place):
            result = gm.graph.graph_copy(graph, values)
        _add_attributes(gm, chosen if isinstance(chosen, Module) else graph.owning_module, graph)
        results = []
        map_arg(result if result is not None else (), lambda n, results=results: results.append(n) or n)
        for old, new in zip(match.returning_nodes, results):
            old.replace_all_uses_with(new)
            stand_in[old] = new
        for node in reversed(list(gm.graph.nodes)):
            if node in inside and not node.users:
                gm.graph.erase_node(node)
        replaced.append(ReplacedPatterns(match.anchors[0], match.nodes_map, [n for n in gm.graph.nodes if n not in before]))
    gm.recompile()
    return replaced


def _add_attributes(gm, source, graph):
    """Give the module what the replacement names and it lacks."""
    for node in graph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        try:
            _get_attr(gm, node.target)
        except AttributeError:
            if source is None:
                raise RuntimeError(f"Attempted to create a \"{node.op}\" node for '{node.target}', which neither the module nor "
                                   f"the replacement "
                                   "has") from None
            _assign_attr(copy.deepcopy(_get_attr(source, node.target)), gm, node.target)
