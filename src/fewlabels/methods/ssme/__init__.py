"""Semi-supervised mixtures of all classifiers' scores: SSME (Shanmugam et al., 2025).

The model is P(class) P(scores | class), fitted by EM, with known labels held fixed; a flow is
trained by Adam as well. Start with `kde`, the method with kernel densities and its bandwidths, and
`kde_mixture`, its E- and M-step; `flow` is the method with a normalising flow, `flow_training` the
mixture in its latent space and how both are trained, `real_nvp` the flow itself (Dinh et al.,
2017). The room imports `base`, `em`, `per_model` and `replicates` of methods.
"""
