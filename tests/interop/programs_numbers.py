"""o: numbers that a program reads from its tensors, and sizes computed from sizes."""

import torch
from torch import nn
from torch.export import Dim
from torch.nn import functional as F

from programs import Function, Program, program

AUTO = Dim.AUTO


@program("o")
def flag_asserted():
    def forward(x, flag):
        torch._check(flag.item())
        return x * 2

    return Program(Function(forward), (torch.randn(4), torch.tensor(True)))


@program("o")
def flags_combined():
    def forward(x, flag):
        first, second = flag.item(), (x.sum() > -100).item()
        torch._check(first | second)
        torch._check(torch.sym_not(first))
        return x + 1

    return Program(Function(forward), (torch.randn(4), torch.tensor(False)), dynamic_shapes=({0: AUTO}, None))


@program("o")
def flag_chooses_a_branch():
    def forward(x, flag):
        return torch.cond(flag.item(), lambda x: x * 2, lambda x: x - 1, (x,))

    return Program(Function(forward), (torch.randn(4), torch.tensor(True)),
                   more=[((torch.randn(4), torch.tensor(False)), {})])


@program("o")
def flag_chooses_a_number():
    def forward(x, flag):
        return x * torch.sym_ite(flag.item(), 2, 3) + x * flag.item()

    return Program(Function(forward), (torch.randn(4), torch.tensor(True)),
                   more=[((torch.randn(4), torch.tensor(False)), {})])


@program("o")
def numbers_asserted_equal():
    def forward(x, y, n, m):
        first, second = n.item(), m.item()
        torch._check(first == second)
        torch._check(first >= 0)
        torch._check(first <= x.shape[0])
        torch._check(second <= y.shape[0])
        return x[:first] + y[:second]

    sizes = ({0: AUTO}, {0: AUTO}, None, None)
    return Program(Function(forward), (torch.randn(5), torch.randn(6), torch.tensor(3), torch.tensor(3)), dynamic_shapes=sizes,
                   more=[((torch.randn(4), torch.randn(4), torch.tensor(2), torch.tensor(2)), {})])


@program("o")
def number_asserted_to_be_a_constant():
    def forward(x, n):
        number = n.item()
        torch._check(number == 3)
        return x + x.new_ones(number)

    return Program(Function(forward), (torch.randn(3), torch.tensor(3)))


@program("o")
def number_asserted_to_be_a_size():
    def forward(x, n):
        number = n.item()
        torch._check(number == x.shape[0])
        return x + x.new_ones(number)

    return Program(Function(forward), (torch.randn(4), torch.tensor(4)), dynamic_shapes=({0: AUTO}, None),
                   more=[((torch.randn(6), torch.tensor(6)), {})])


@program("o")
def number_asserted_to_be_a_multiple():
    def forward(x, n, m):
        whole, half = n.item(), m.item()
        torch._check(whole >= 2)
        torch._check(half >= 2)
        torch._check(whole == half * 2)
        return x.new_ones(whole).view(half, 2) + x.new_ones(half)[:, None] * x.sum()

    return Program(Function(forward), (torch.randn(4), torch.tensor(6), torch.tensor(3)))


@program("o")
def counts_asserted_equal():
    def forward(x, y):
        a, b = x[x > 0], y[y > 0]
        torch._check(a.shape[0] == b.shape[0])
        return a * b

    x = torch.tensor([1.5, -1.0, 2.0, 0.5])
    return Program(Function(forward), (x, x.flip(0)), more=[((x - 1, x.flip(0) - 1), {})])


@program("o")
def split_at_places_in_a_tensor():
    def forward(x, places):
        first, second, third = torch.tensor_split(x, places)
        return first.sum() + second.sum() * 2 + third.sum() * 3, second * 2

    return Program(Function(forward), (torch.randn(10), torch.tensor([2, 5])), dynamic_shapes=({0: AUTO}, None),
                   more=[((torch.randn(7), torch.tensor([3, -1])), {}), ((torch.randn(4), torch.tensor([0, 9])), {})])


@program("o")
def consecutive_rows():
    def forward(x):
        rows, inverse, counts = torch.unique_consecutive(x, return_inverse=True, return_counts=True, dim=1)
        return rows, inverse, counts

    x = torch.tensor([[1.0, 2, 2], [1, 2, 2], [3, 3, 3], [1, 2, 2]])
    return Program(Function(forward), (x,), dynamic_shapes=({0: AUTO, 1: AUTO},), gradient=False,
                   more=[((x.t().contiguous(),), {})])


@program("o")
def sizes_divided():
    def forward(x):
        pairs = x.view(x.shape[0] // 2, 2, x.shape[1])
        thirds = x.t().reshape(x.shape[1] // 3, 3, x.shape[0]).mean(1)
        first, second = torch.split(x, x.shape[0] // 2)
        return (pairs * 2).sum(1), thirds, first - second, F.glu(x, 0)

    return Program(Function(forward), (torch.randn(4, 6),), dynamic_shapes=({0: AUTO, 1: AUTO},),
                   more=[((torch.randn(8, 9),), {})])


@program("o")
def heads_of_any_width():
    def forward(x):
        batch, length, width = x.shape
        heads = x.view(batch, length, 2, width // 2).transpose(1, 2)
        out = F.scaled_dot_product_attention(heads, heads, heads, is_causal=True)
        return out.transpose(1, 2).reshape(batch, length, width)

    return Program(Function(forward), (torch.randn(2, 5, 8),), dynamic_shapes=({0: AUTO, 1: AUTO, 2: AUTO},),
                   more=[((torch.randn(3, 4, 12),), {})])


@program("o")
def attention_of_any_size():
    def forward(q, k, v, mask):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    def operands(batch, heads, length, width):
        return (*(torch.randn(batch, heads, length, width) for _ in range(3)), torch.randn(length, length))

    whole = {d: AUTO for d in range(4)}
    return Program(Function(forward), operands(2, 2, 5, 4), dynamic_shapes=(whole, whole, whole, {0: AUTO, 1: AUTO}),
                   more=[(operands(3, 4, 7, 6), {})])


@program("o")
def seen_as_integers():
    def forward(x):
        y = x.view(torch.int32)
        y.add_(1)
        return x * 2, y

    return Program(Function(forward), (torch.randn(3, 4),), mixed=True)


@program("o")
def input_turned():
    def forward(x):
        y = x * 2
        x.t_()
        x.add_(1)
        return y, x * 3

    return Program(Function(forward), (torch.randn(3, 4),), dynamic_shapes=({0: AUTO, 1: AUTO},), gradient=False,
                   more=[((torch.randn(5, 2),), {})])


class Rows(nn.Module):
    """Writes to the row that a counter names, which may be counted from the end."""

    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.randn(4, 3))
        self.register_buffer("next", torch.tensor(2))

    def forward(self, x):
        self.next += 1
        self.rows[self.next % 4] = x
        return self.rows.sum(0) * x


@program("o")
def row_that_a_counter_names():
    return Program(Rows(), (torch.randn(3),))


@program("o")
def as_many_as_the_data_select():
    def forward(x, mask):
        return torch.masked_select(x, mask).cumsum(0)

    return Program(Function(forward), (torch.randn(3, 4), torch.rand(3, 4) > 0.4),
                   more=[((torch.randn(3, 4), torch.zeros(3, 4, dtype=torch.bool)), {})])


@program("o")
def shaped_by_an_item():
    def forward(x, n):
        rows = n.item()
        torch._check(rows > 1)
        torch._check(x.shape[0] % rows == 0)
        return x.reshape(rows, -1).sum(1)

    return Program(Function(forward), (torch.randn(12), torch.tensor(3)), more=[((torch.randn(12), torch.tensor(4)), {})])


@program("o")
def pieces_of_any_size():
    def forward(x):
        return torch.chunk(x, 2, 0), torch.tensor_split(x, 2, 0), torch.eye(x.shape[0]) @ x

    return Program(Function(forward), (torch.randn(4, 5),), dynamic_shapes=({0: AUTO},), more=[((torch.randn(8, 5),), {})])


@program("o")
def as_many_pieces_as_the_file_says():
    def forward(x):
        return [y * 2 for y in torch.split(x, 5)], [y + 1 for y in torch.unsafe_split(x, 5)]

    return Program(Function(forward), (torch.randn(14, 3),), dynamic_shapes=({0: AUTO},), more=[((torch.randn(13, 3),), {})])


@program("o")
def beside_what_has_no_gradient():
    def forward(x, y):
        return x * y, torch.floor_divide(x, y)

    return Program(Function(forward), (torch.randn(3), torch.randn(3)))


@program("o")
def heads_of_any_number():
    """How many heads of the query share those of key and value only the run tells."""
    def forward(q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)

    def sample(heads, shared):
        return torch.randn(2, heads, 5, 8), torch.randn(2, shared, 7, 8), torch.randn(2, shared, 7, 8)
    return Program(Function(forward), sample(6, 3), dynamic_shapes=({1: AUTO},) * 3,
                   more=[(sample(8, 2), {}), (sample(4, 4), {})])


@program("o")
def factors_of_any_sizes():
    """Which of its two sides is longer only the run tells."""
    def forward(x):
        lu, pivots = torch.linalg.lu_factor(x)
        q, r = torch.linalg.qr(x)
        return lu.sin().sum() + q.cos().sum() + r.sin().sum(), pivots

    def sample(m, n):
        return (torch.randn(2, m, n) + 3 * torch.eye(m, n),)
    return Program(Function(forward), sample(5, 3), dynamic_shapes=({1: AUTO, 2: AUTO},),
                   more=[(sample(3, 4), {}), (sample(4, 4), {})])


@program("o")
def sizes_that_must_be_equal():
    """No guard of the export says that the sizes of both tensors are."""
    def forward(x, row, index, source):
        return torch.select_scatter(x, row, -1, -1), x.index_reduce(1, index, source, "mean", include_self=False)

    def sample(n, m, k):
        return torch.randn(n, m, 4), torch.randn(n, m), torch.arange(k) % m, torch.randn(n, k, 4)
    shapes = ({0: AUTO, 1: AUTO}, {0: AUTO, 1: AUTO}, {0: AUTO}, {0: AUTO, 1: AUTO})
    return Program(Function(forward), sample(3, 5, 7), dynamic_shapes=shapes, more=[(sample(4, 6, 9), {})])


@program("o")
def roots_of_sizes():
    def forward(x):
        return x / torch._sym_sqrt(x.shape[1]) + x.shape[0] ** 0.5

    return Program(Function(forward), (torch.randn(3, 4),), dynamic_shapes=({0: AUTO, 1: AUTO},), more=[((torch.randn(7, 5),), {})])


@program("o")
def losses_of_each_sample():
    """PyTorch says that these are numbers or have one element, when they are of one sample or of any number of them."""
    def forward(x, t, labels):
        margins = nn.functional.multilabel_margin_loss(x[0], labels, reduction="none")
        return nn.functional.nll_loss(x.log_softmax(1), t, reduction="none").cos(), margins, (margins + 1).sin()

    def sample(n):
        return torch.randn(n, 4), torch.randint(0, 4, (n,)), torch.tensor([3, 0, -1, 1])
    return Program(Function(forward), sample(3), dynamic_shapes=({0: AUTO}, {0: AUTO}, None), more=[(sample(6), {})])


@program("o")
def dtypes_of_results():
    def forward(x, y):
        return x + y.to(torch.result_type(x, y)), x.to(torch.promote_types(x.dtype, torch.float64)) if torch.result_type(x, 2.5) == x.dtype else y

    return Program(Function(forward), (torch.randn(3), torch.arange(3)), mixed=True)
