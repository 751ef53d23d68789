"""ReLU networks read from torch, scikit-learn and ONNX: the model's own answers, or a sentence why not."""

import numpy as np
import pytest
import torch
from torch import nn

from likewise.core.errors import InputError
from likewise.models import as_model
from likewise.models.layers import read_relu_network

onnx = pytest.importorskip("onnx")
helper, TensorProto = onnx.helper, onnx.TensorProto


def rows(n=200, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)) * 3.0 + 1.0


def graph_of(nodes, constants, *, inputs=(("x", 4),), output="out", width=2):
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, d]) for name, d in inputs],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, [None, width])],
        [
            onnx.numpy_helper.from_array(np.asarray(value, dtype=np.float32), name)
            for name, value in constants.items()
        ],
    )
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])


def chain(*, first="Relu", shapes=((4, 6), (6, 2)), seed=0):
    rng = np.random.default_rng(seed)
    constants = {
        "w0": rng.normal(size=shapes[0]),
        "b0": rng.normal(size=shapes[0][1]),
        "w1": rng.normal(size=shapes[1]).T,
        "b1": rng.normal(size=shapes[1][1]),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["a"]),
        helper.make_node("Add", ["b0", "a"], ["b"]),
        helper.make_node(first, ["b"], ["c"]),
        helper.make_node("Gemm", ["c", "w1", "b1"], ["out"], transB=1, alpha=0.5, beta=2.0),
    ]
    return nodes, constants


def test_onnx_gives_what_the_graph_answers():
    nodes, constants = chain()
    model = as_model(graph_of(nodes, constants), output="logits")
    net = read_relu_network(model)
    assert [weight.shape for weight in net.weights] == [(6, 4), (2, 6)]
    X = rows().astype(np.float32).astype(np.float64)
    error = net.rounding(np.abs(X).max(axis=0))
    assert np.abs(net.outputs(X) - model.outputs(X)).max() <= error


def test_onnx_with_a_scaler_in_front_and_a_softmax_behind():
    nodes, constants = chain()
    constants |= {"mean": np.array([1.0, 2.0, 3.0, 4.0]), "spread": np.array([2.0, 3.0, 4.0, 5.0])}
    nodes[0] = helper.make_node("MatMul", ["z", "w0"], ["a"])
    nodes = [
        helper.make_node("Sub", ["x", "mean"], ["y"]),
        helper.make_node("Div", ["y", "spread"], ["z"]),
        *nodes[:-1],
        helper.make_node("Gemm", ["c", "w1", "b1"], ["s"], transB=1),
        helper.make_node("Softmax", ["s"], ["out"], axis=1),
    ]
    model = as_model(graph_of(nodes, constants))
    net = read_relu_network(model)
    scores = net.outputs(rows())
    np.testing.assert_array_equal(scores.argmax(axis=1), model.outputs(rows()).argmax(axis=1))


def test_onnx_of_a_scikit_learn_pipeline():
    skl2onnx = pytest.importorskip("skl2onnx")
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X = rows(300)
    for classes in (2, 3):
        y = (X[:, 0] > 1).astype(int) + (classes - 2) * (X[:, 1] > 1)
        pipe = make_pipeline(
            StandardScaler(), MLPClassifier((5, 4), max_iter=500, tol=1e-2, random_state=0)
        ).fit(X, y)
        exported = skl2onnx.to_onnx(pipe, X[:1].astype(np.float32), options={"zipmap": False})
        ours, theirs = read_relu_network(as_model(exported)), read_relu_network(as_model(pipe))
        np.testing.assert_allclose(ours.outputs(X), theirs.outputs(X), atol=1e-4)


@pytest.mark.parametrize("operation", ["Tanh", "Sigmoid", "Neg", "Elu"])
def test_other_operations_are_named(operation):
    nodes, constants = chain(first=operation)
    with pytest.raises(InputError, match=f"ONNX graph is not a plain network.*({operation}|Gemm)"):
        read_relu_network(as_model(graph_of(nodes, constants), output="logits"))


def test_two_ways_to_the_output_are_refused():
    nodes, constants = chain()
    nodes[1] = helper.make_node("Add", ["a", "a"], ["b"])
    with pytest.raises(InputError, match="Add takes 2 values"):
        read_relu_network(as_model(graph_of(nodes, constants), output="logits"))


def test_weights_in_another_file_are_refused(monkeypatch):
    from likewise.models import layers

    nodes, constants = chain()
    proto = graph_of(nodes, constants)
    model = as_model(proto, output="logits")
    entry = proto.graph.initializer[0].external_data.add()
    entry.key, entry.value = "location", "/etc/passwd"
    monkeypatch.setattr(layers, "graph_bytes", lambda session: proto.SerializeToString())
    with pytest.raises(InputError, match="another file"):
        read_relu_network(model)


def test_shapes_that_do_not_fit_are_refused(monkeypatch):
    from likewise.models import layers

    nodes, constants = chain()
    model = as_model(graph_of(nodes, constants), output="logits")
    wrong = graph_of(nodes, constants | {"w0": np.ones((5, 6))})
    monkeypatch.setattr(layers, "graph_bytes", lambda session: wrong.SerializeToString())
    with pytest.raises(InputError, match="shapes of MatMul do not fit"):
        read_relu_network(model)


def test_a_graph_that_says_one_thing_and_does_another_is_refused(monkeypatch):
    from likewise.models import layers

    nodes, constants = chain()
    model = as_model(graph_of(nodes, constants), output="logits")
    other = graph_of(*chain(seed=1))
    monkeypatch.setattr(layers, "graph_bytes", lambda session: other.SerializeToString())
    with pytest.raises(InputError, match="does not give its answers"):
        read_relu_network(model)


def test_torch_networks_that_are_no_relus_are_refused():
    with pytest.raises(InputError, match="not ReLUs"):
        read_relu_network(nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)))
    with pytest.raises(InputError, match="not a plain network"):
        read_relu_network(nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.LayerNorm(4), nn.Linear(4, 1)))


def test_a_callable_is_refused():
    with pytest.raises(InputError, match="not a plain network"):
        read_relu_network(as_model(lambda X: 1 / (1 + np.exp(-X[:, 0]))))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_stated_rounding_holds_what_the_model_computes(dtype):
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Linear(4, 50), nn.BatchNorm1d(50), nn.ReLU(), nn.Linear(50, 20), nn.ReLU(), nn.Linear(20, 1)
    )
    net = net.to(dtype).eval()
    with torch.no_grad():
        net[1].running_mean += torch.randn(50, dtype=dtype) * 100
        net[1].running_var += torch.rand(50, dtype=dtype)
    read = read_relu_network(net)
    X = rows(500) * 10
    given = torch.tensor(X, dtype=dtype)
    with torch.no_grad():
        own = net(given).double().numpy()
    assert np.abs(read.outputs(X) - own).max() <= read.rounding(np.abs(X).max(axis=0))
