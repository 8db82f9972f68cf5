"""Hand-written calls: factorizations of matrices and what follows from them, where PyTorch's own samples are missing."""

import math

import torch

from samples import aten, call, f64, i64, rand


def matrices(*sizes, dtype=f64):
    """Square matrices far from singular."""
    return rand(*sizes, dtype=dtype) + 6 * torch.eye(sizes[-1], dtype=dtype)


def factorizations():
    for dtype in (torch.float32, f64):
        a = matrices(2, 3, 3, dtype=dtype)
        for overload in (aten.inverse.default, aten.det.default, aten.slogdet.default):
            call(overload, a)
            call(overload, a[0].mT)
        call(aten._cholesky_solve_helper.default, rand(2, 3, 2, dtype=dtype), a.tril(), False)
        call(aten._cholesky_solve_helper.default, rand(2, 3, 2, dtype=dtype), a.triu(), True)
        reflectors, tau = torch.geqrf(rand(2, 4, 3, dtype=dtype))
        call(aten.orgqr.default, reflectors, tau)
    for left in (True, False):
        call(aten._linalg_solve_ex.default, matrices(2, 3, 3), rand(3, 3, dtype=f64), left=left)


def spectra():
    wide = rand(2, 3, 4, dtype=f64)
    for n in (0, 1, 2, 5, -1, -3):
        call(aten.matrix_power.default, matrices(2, 3, 3), n)
    for keepdim in (False, True):
        call(aten.nuclear_norm.default, wide[0], keepdim)
        call(aten.nuclear_norm.dim, wide, [0, 2], keepdim)
    for order in (None, 2, -2, 1, -1, math.inf, -math.inf):
        call(aten.linalg_cond.default, matrices(2, 3, 3), order)
    for order in ("fro", "nuc"):
        call(aten.linalg_cond.p_str, matrices(2, 3, 3), order)
    call(aten.linalg_pinv.default, wide, 0.01)
    call(aten.linalg_pinv.default, matrices(3, 3) + matrices(3, 3).mT * 0, 0.01)
    call(aten.linalg_pinv.rcond_tensor, wide, torch.tensor([0.01, 0.02], dtype=f64))
    call(aten.linalg_matrix_rank.default, wide, 0.5)
    call(aten.linalg_matrix_rank.tol_tensor, wide, torch.tensor([0.1, 3.0], dtype=f64))
    for driver in ("gels", "gelsy", "gelsd", "gelss"):
        call(aten.linalg_lstsq.default, wide.mT, rand(2, 4, 2, dtype=f64), driver=driver)
        call(aten.linalg_lstsq.default, wide, rand(2, 3, 2, dtype=f64), driver=driver)
    call(aten.linalg_lstsq.default, wide[0].mT, rand(4, dtype=f64))
    for size in (1, 2, 6, 9, 25):  # beyond that LAPACK divides and conquers, and signs are whatever comes of it
        symmetric = rand(size, size, dtype=f64)
        call(aten._linalg_eigh.default, symmetric + symmetric.mT, "U")
        call(aten._linalg_eigh.default, symmetric + symmetric.mT)
        call(aten._linalg_svd.default, rand(size, size, dtype=f64))
        call(aten._linalg_svd.default, rand(size + 2, size, dtype=f64), True)
        call(aten._linalg_svd.default, rand(size, size + 2, dtype=f64), True)
        call(aten._linalg_svd.default, rand(size, 3 * size, dtype=f64))
        call(aten._linalg_svd.default, rand(2 * size, size, dtype=f64), True)
    call(aten.vander.default, torch.tensor([2.0, 3.0, -1.0]), None, True)
    call(aten.vander.default, torch.tensor([2, 3, -1], dtype=i64), 2)
