"""Which messages go together when some are forgotten, and how what stays is joined."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from claw_local.store.exchanges import Node, cut

# 1 question, 2 and 3 two replies to it; 4 a question after 2, 5 its reply; 6 a question after 5, 7 its reply; 8 a title
TREE = [
    Node(1, None, "user"),
    Node(2, 1, "assistant"),
    Node(3, 1, "assistant"),
    Node(4, 2, "user"),
    Node(5, 4, "assistant"),
    Node(6, 5, "user"),
    Node(7, 6, "assistant"),
    Node(8, None, "user", side=True),
]


def test_a_question_goes_with_its_replies_and_what_follows_is_joined_to_the_reply_before() -> None:
    change = cut(TREE, {4})
    assert change.gone == {4, 5, 8}
    assert change.joined == {6: 2}
    assert change.after == {7}
    assert change.before == {2}
    assert change.early and not change.empty


def test_a_reply_goes_alone_while_another_version_stays_else_with_its_question() -> None:
    one = cut(TREE, {3})
    assert one.gone == {3, 8} and one.joined == {} and one.after == set() and one.before == set()
    shown = cut(TREE, {2})
    assert shown.gone == {2, 8}
    assert shown.joined == {4: None}, "it followed a version that is gone: it begins a branch of its own"
    assert shown.after == {5, 7}
    last = cut(TREE, {7})
    assert last.gone == {6, 7, 8} and last.before == {5} and last.after == set() and not last.early


def test_of_everything_nothing_stays() -> None:
    change = cut(TREE, {1, 6, 4})
    assert change.empty and change.gone == {node.id for node in TREE}
    assert not cut(TREE, set()).gone and not cut(TREE, {99}).gone


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[Node], set[int]]:
    nodes: list[Node] = []
    for identity in range(1, draw(st.integers(2, 14))):
        parent = draw(st.sampled_from([None, *nodes]))
        role = "user" if parent is None or parent.role == "assistant" else "assistant"
        nodes.append(Node(identity, parent.id if parent else None, role))
    return nodes, draw(st.sets(st.sampled_from([node.id for node in nodes])))


@given(trees())
def test_what_stays_is_a_tree_in_which_people_and_assistant_take_turns(given_tree: tuple[list[Node], set[int]]) -> None:
    nodes, chosen = given_tree
    change = cut(nodes, chosen)
    by_id = {node.id: node for node in nodes}
    assert chosen <= change.gone
    kept = [node for node in nodes if node.id not in change.gone]
    for node in kept:
        parent = change.joined.get(node.id, node.parent_id)
        assert parent is None or parent not in change.gone
        assert parent is None or by_id[parent].role != node.role
        assert parent is not None or node.role == "user", "no reply is left without its question"
    for identity in change.gone - chosen:
        node = by_id[identity]
        replies = {other.id for other in nodes if other.parent_id == identity}
        assert node.parent_id in change.gone or (replies and replies <= change.gone)
    assert change.empty == (bool(change.gone) and not kept)


def test_what_a_tool_returned_goes_with_the_reply_that_called_it_and_the_steps_after_it() -> None:
    nodes = [
        Node(1, None, "user"),
        Node(2, 1, "assistant"),
        Node(3, 2, "tool"),
        Node(4, 3, "tool"),
        Node(5, 4, "assistant"),
        Node(6, 5, "user"),
        Node(7, 6, "assistant"),
    ]
    for chosen in ({2}, {3}):
        change = cut(nodes, chosen)
        assert {3, 4, 5} <= change.gone and not {6, 7} & change.gone
    assert cut(nodes, {2}).gone == {1, 2, 3, 4, 5}
    assert cut(nodes, {2}).joined == {6: None}
