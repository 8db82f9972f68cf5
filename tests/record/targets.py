"""Overloads that exported programs contain, counted in files that PyTorch 2.15 wrote."""

# In 60 public models, by how many of them contain it.
FIRST_LIST = """
linear.default conv2d.default add.Tensor dropout.default flatten.using_ints mul.Tensor transpose.int
adaptive_avg_pool2d.default view.default batch_norm.default reshape.default unsqueeze.default
scaled_dot_product_attention.default layer_norm.default relu_.default cat.default expand.default arange.default
_assert_tensor_metadata.default embedding.default gelu.default slice.Tensor add_.Tensor to.dtype max_pool2d.default
mean.dim sub.Tensor to.dtype_layout index.Tensor alias.default cumsum.default __and__.Tensor new_ones.default
ne.Scalar pow.Tensor_Scalar le.Tensor ge.Scalar contiguous.default permute.default relu.default select.int
diff.default eq.Tensor neg.default rsqrt.default sigmoid.default silu.default chunk.default dropout_.default
tanh.default silu_.default softmax.int avg_pool2d.default gather.default hardsigmoid.default matmul.default div.Tensor
zeros.default hardswish_.default to.device squeeze.dim upsample_bilinear2d.vec ones.default div_.Tensor conv1d.default
group_norm.default masked_fill.Scalar unbind.int gt.Tensor type_as.default where.ScalarOther bitwise_not.default
stack.default bernoulli_.float empty.memory_format _weight_norm.default rand.default eq.Scalar fill_.Scalar
new_zeros.default pad.default roll.default bmm.default detach_.default lift_fresh_copy.default sqrt.default
exp.default softplus.default split_with_sizes.default hardtanh_.default abs.default full_like.default gt.Scalar
log.default lt.Scalar min.other where.self unflatten.int addmm.default split.Tensor empty_like.default
floor_divide.default histc.default index_put_.default sort.default sum.dim_IntList topk.default clamp_min.default
cos.default div.Tensor_mode expand_as.default linalg_vector_norm.default pow.Scalar sin.default conv2d.padding
""".split()

# In programs of one operator made from PyTorch's own samples.
SECOND_LIST = """
_assert_scalar.default _batch_norm_with_update.default _chunk_cat.default _lu_with_info.default
_native_batch_norm_legit.default _safe_softmax.default _scaled_dot_product_flash_attention_for_cpu.default
_softmax_backward_data.default _unique2.default _unsafe_masked_index.default
_unsafe_masked_index_put_accumulate.default _upsample_bilinear2d_aa.vec _upsample_nearest_exact1d.vec
_upsample_nearest_exact2d.vec acos.default acosh.default adaptive_avg_pool1d.default adaptive_avg_pool3d.default
adaptive_max_pool1d.default adaptive_max_pool2d.default adaptive_max_pool3d.default addbmm.default addcdiv.default
addcmul.default addmv.default addr.default alias_copy.default all.default all.dim alpha_dropout.default amax.default
amin.default aminmax.default angle.default any.default any.dim arange.start_step argmax.default argmin.default
argsort.default argwhere.default as_strided.default as_strided_copy.default as_strided_scatter.default asin.default
asinh.default atan.default atan2.default atanh.default atleast_1d.default atleast_2d.default atleast_3d.default
avg_pool1d.default avg_pool3d.default baddbmm.default bernoulli.default bilinear.default binary_cross_entropy.default
binary_cross_entropy_with_logits.default bincount.default bitwise_and.Tensor bitwise_left_shift.Tensor
bitwise_or.Tensor bitwise_right_shift.Tensor bitwise_xor.Tensor block_diag.default broadcast_tensors.default
broadcast_to.default bucketize.Tensor cartesian_prod.default cauchy_.default cdist.default ceil.default celu.default
channel_shuffle.default cholesky_inverse.default cholesky_solve.default clamp.Tensor clamp_max.Tensor clamp_min.Tensor
clone.default column_stack.default combinations.default complex.default conj_physical.default constant_pad_nd.default
conv1d.padding conv3d.padding conv_transpose1d.default conv_transpose2d.input conv_transpose3d.input copysign.Tensor
cosh.default cosine_embedding_loss.default cosine_similarity.default count_nonzero.default cross.default
cross_entropy_loss.default cummax.default cummin.default cumprod.default cumulative_trapezoid.x deg2rad.default
detach.default diag.default diag_embed.default diagflat.default diagonal.default diagonal_copy.default
diagonal_scatter.default digamma.default dist.default divide.Tensor dot.default dsplit.array dsplit.int dstack.default
einsum.default elu.default embedding_bag.padding_idx embedding_renorm_.default empty_permuted.default erf.default
erfc.default erfinv.default exp2.default expand_copy.default expm1.default exponential_.default eye.default eye.m
feature_alpha_dropout.default feature_dropout.default fft_fft.default fft_fft2.default fft_fftn.default
fft_fftshift.default fft_hfft.default fft_hfft2.default fft_hfftn.default fft_ifft.default fft_ifft2.default
fft_ifftn.default fft_ifftshift.default fft_ihfft.default fft_ihfft2.default fft_ihfftn.default fft_irfft.default
fft_irfft2.default fft_irfftn.default fft_rfft.default fft_rfft2.default fft_rfftn.default fill.Scalar flip.default
fliplr.default flipud.default float_power.Tensor_Tensor floor.default fmax.default fmin.default fmod.Tensor
frac.default fractional_max_pool2d.default fractional_max_pool3d.default frexp.Tensor full.default gcd.default
ge.Tensor geometric_.default geqrf.default glu.default gradient.scalarint gradient.scalarrayarray grid_sampler.default
grid_sampler_2d.default grid_sampler_3d.default hardshrink.default hardswish.default hardtanh.default
hash_tensor.default heaviside.default hinge_embedding_loss.default histogram.bin_ct histogramdd.default hsplit.array
hsplit.int hstack.default huber_loss.default hypot.default i0.default igamma.default igammac.default im2col.default
index_add.default index_copy.default index_fill.int_Scalar index_fill.int_Tensor index_put.default
index_reduce.default index_select.default inner.default instance_norm.default isclose.default isfinite.default
isin.Tensor_Tensor isinf.default isnan.default isneginf.default isposinf.default isreal.default item.default
kl_div.default kron.default kthvalue.default l1_loss.default lcm.default ldexp.Tensor leaky_relu.default lerp.Scalar
lgamma.default linalg_cholesky.default linalg_cholesky_ex.default linalg_cond.default linalg_cross.default
linalg_det.default linalg_diagonal.default linalg_eig.default linalg_eigh.default linalg_eigvals.default
linalg_eigvalsh.default linalg_householder_product.default linalg_inv.default linalg_inv_ex.default
linalg_ldl_factor.default linalg_ldl_factor_ex.default linalg_ldl_solve.default linalg_lu.default
linalg_lu_factor.default linalg_lu_factor_ex.default linalg_lu_solve.default linalg_matrix_norm.str_ord
linalg_matrix_power.default linalg_matrix_rank.atol_rtol_tensor linalg_matrix_sqrth.default linalg_multi_dot.default
linalg_norm.default linalg_pinv.atol_rtol_tensor linalg_polar.default linalg_qr.default linalg_slogdet.default
linalg_solve.default linalg_solve_ex.default linalg_solve_triangular.default linalg_svd.default linalg_svdvals.default
linalg_tensorinv.default linalg_tensorsolve.default linalg_vander.default linalg_vecdot.default linspace.Tensor_Scalar
linspace.Tensor_Tensor linspace.default log10.default log1p.default log2.default log_normal_.default
log_sigmoid.default log_softmax.int logaddexp.default logaddexp2.default logcumsumexp.default logdet.default
logical_and.default logical_not.default logical_or.default logical_xor.default logit.default logspace.Tensor_Tensor
logspace.default logsumexp.default lt.Tensor lu_solve.default lu_unpack.default mH.default mT.default
margin_ranking_loss.default masked_fill.Tensor masked_scatter.default masked_select.default matrix_H.default
matrix_exp.default max.default max.dim max.other max_pool1d_with_indices.default max_pool2d_with_indices.default
max_pool2d_with_indices_backward.default max_pool3d_with_indices.default max_unpool2d.default max_unpool3d.default
maximum.default mean.default median.default meshgrid.indexing min.default min.dim minimum.default mish.default
mm.default mode.default movedim.intlist mse_loss.default msort.default multi_margin_loss.default
multilabel_margin_loss.default multinomial.default mv.default mvlgamma.default nan_to_num.default nanmean.default
nanmedian.default nanmedian.dim nanquantile.default nanquantile.scalar nansum.default narrow.default
narrow_copy.default native_batch_norm.default native_dropout_backward.default native_group_norm.default
native_layer_norm.default ne.Tensor new_full.default nextafter.default nll_loss_nd.default nonzero.default
nonzero_static.default normal.Tensor_Tensor normal.float_float normal_.default numpy_T.default one_hot.default
ones_like.default ormqr.default outer.default pairwise_distance.default pdist.default permute_copy.default
pinverse.default pixel_shuffle.default pixel_unshuffle.default poisson_nll_loss.default polar.default
polygamma.default positive.default pow.Tensor_Tensor prelu.default prod.default prod.dim_int put.default
quantile.default quantile.scalar rad2deg.default rand_like.default randint.default randint.low randint_like.default
randint_like.low_dtype randn.default randn_like.default ravel.default real.default reciprocal.default relu6.default
remainder.Tensor renorm.default repeat.default repeat_interleave.self_int reshape_as.default resize_.default
resize_as_.default resolve_conj.default resolve_neg.default rms_norm.default rot90.default round.decimals
round.default rrelu.default rsub.Scalar rsub.Tensor scalar_tensor.default scatter.reduce scatter.src
scatter_add.default scatter_reduce.two searchsorted.Tensor segment_reduce.default select_scatter.default selu.default
sgn.default sign.default signbit.default sinc.default sinh.default slice_scatter.default smooth_l1_loss.default
soft_margin_loss.default softshrink.default special_airy_ai.default special_bessel_j0.default
special_bessel_j1.default special_bessel_y0.default special_bessel_y1.default special_chebyshev_polynomial_t.default
special_chebyshev_polynomial_u.default special_chebyshev_polynomial_v.default special_chebyshev_polynomial_w.default
special_entr.default special_erfcx.default special_hermite_polynomial_h.default special_hermite_polynomial_he.default
special_i0e.default special_i1.default special_i1e.default special_laguerre_polynomial_l.default
special_legendre_polynomial_p.default special_log_ndtr.default special_modified_bessel_i0.default
special_modified_bessel_i1.default special_modified_bessel_k0.default special_modified_bessel_k1.default
special_ndtr.default special_ndtri.default special_polygamma.default special_scaled_modified_bessel_k0.default
special_scaled_modified_bessel_k1.default special_shifted_chebyshev_polynomial_t.default
special_shifted_chebyshev_polynomial_u.default special_shifted_chebyshev_polynomial_v.default
special_shifted_chebyshev_polynomial_w.default special_spherical_bessel_j0.default special_xlog1py.default
special_zeta.default split_with_sizes_copy.default square.default squeeze.default squeeze.dims squeeze_copy.default
squeeze_copy.dim std.correction std.default std_mean.correction std_mean.default stft.default subtract.Tensor
sum.default sum_to_size.default svd.default sym_size.int sym_storage_offset.default t.default t_copy.default
take.default take_along_dim.default tan.default tensor_split.indices tensor_split.tensor_indices_or_sections
tensordot.default threshold.default tile.default trace.default transpose_copy.int trapezoid.x trapz.x
triangular_solve.default tril.default tril_indices.default triplet_margin_loss.default triu.default
triu_indices.default true_divide.Tensor trunc.default unbind_copy.int unfold.default unfold_copy.default
uniform_.default unique_consecutive.default unique_dim.default unsafe_chunk.default unsafe_split.Tensor
unsqueeze_copy.default upsample_bicubic2d.vec upsample_linear1d.vec upsample_nearest1d.vec upsample_nearest2d.vec
upsample_trilinear3d.vec var.correction var.default var_mean.correction var_mean.default vdot.default view_as.default
view_as_complex.default view_copy.default vsplit.array vsplit.int vstack.default xlogy.Tensor zero_.default
zeros_like.default
""".split()

# In examples of torch.export only.
THIRD_LIST = """
_assert_async.msg copy_.default hann_window.default istft.default le.Scalar lstm.input mul_.Tensor
nonzero_numpy.default pad_sequence.default set_.source_Tensor sin.out t_.default transpose_.default
""".split()
