# Distributions whose draws, densities and moments are compared with PyTorch's; the recorder and the tests run these.
def make(t):
    """name -> distribution, over a module `t` like torch."""
    D = t.distributions
    v = t.tensor
    L = v([[1.0, 0.0, 0.0], [0.5, 1.2, 0.0], [-0.3, 0.4, 0.8]])
    S = L @ L.T
    pr = v([0.2, 0.5, 0.3])
    return {
        "Normal": D.Normal(v([0.5, -1.0]), v([1.0, 2.0])),
        "Bernoulli": D.Bernoulli(v([0.3, 0.8])),
        "BernoulliLogits": D.Bernoulli(logits=v([-0.3, 0.8])),
        "Beta": D.Beta(v([0.5, 2.0]), v([1.5, 3.0])),
        "Binomial": D.Binomial(10, v([0.3, 0.8])),
        "Categorical": D.Categorical(pr),
        "CategoricalLogits": D.Categorical(logits=v([[0.1, -1.0], [2.0, 0.0]])),
        "Cauchy": D.Cauchy(v([0.5, -1.0]), v([1.0, 2.0])),
        "Chi2": D.Chi2(v([1.0, 4.0])),
        "ContinuousBernoulli": D.ContinuousBernoulli(v([0.3, 0.5, 0.9])),
        "Dirichlet": D.Dirichlet(v([0.5, 1.0, 2.0])),
        "Exponential": D.Exponential(v([0.5, 2.0])),
        "FisherSnedecor": D.FisherSnedecor(v([5.0, 6.0]), v([7.0, 8.0])),
        "Gamma": D.Gamma(v([0.5, 2.0]), v([1.5, 3.0])),
        "GeneralizedPareto": D.GeneralizedPareto(v([0.0, 1.0]), v([1.0, 2.0]), v([0.2, 0.0])),
        "Geometric": D.Geometric(v([0.3, 0.8])),
        "Gumbel": D.Gumbel(v([0.5, -1.0]), v([1.0, 2.0])),
        "HalfCauchy": D.HalfCauchy(v([1.0, 2.0])),
        "HalfNormal": D.HalfNormal(v([1.0, 2.0])),
        "Independent": D.Independent(D.Normal(t.zeros(3, 2), t.ones(3, 2)), 1),
        "InverseGamma": D.InverseGamma(v([3.5, 2.5]), v([1.5, 3.0])),
        "Kumaraswamy": D.Kumaraswamy(v([0.5, 2.0]), v([1.5, 3.0])),
        "LKJCholesky": D.LKJCholesky(3, v([0.5, 2.0])),
        "Laplace": D.Laplace(v([0.5, -1.0]), v([1.0, 2.0])),
        "LogNormal": D.LogNormal(v([0.5, -1.0]), v([1.0, 0.5])),
        "LogisticNormal": D.LogisticNormal(v([0.5, -1.0]), v([1.0, 0.5])),
        "LowRank": D.LowRankMultivariateNormal(v([0.5, -1.0, 0.0]), v([[1.0], [0.5], [0.2]]), v([1.0, 0.5, 0.3])),
        "Mixture": D.MixtureSameFamily(D.Categorical(pr), D.Normal(v([0.0, 1.0, 5.0]), v([1.0, 2.0, 0.5]))),
        "Multinomial": D.Multinomial(7, pr),
        "MVN": D.MultivariateNormal(v([0.5, -1.0, 0.0]), S),
        "MVNtril": D.MultivariateNormal(t.zeros(2, 3), scale_tril=L),
        "MVNprecision": D.MultivariateNormal(t.zeros(3), precision_matrix=S),
        "NegativeBinomial": D.NegativeBinomial(v([3.0, 5.0]), v([0.3, 0.6])),
        "OneHot": D.OneHotCategorical(pr),
        "OneHotST": D.OneHotCategoricalStraightThrough(pr),
        "Pareto": D.Pareto(v([1.0, 2.0]), v([3.0, 2.5])),
        "Poisson": D.Poisson(v([0.5, 4.0])),
        "RelaxedBernoulli": D.RelaxedBernoulli(v(0.5), v([0.3, 0.8])),
        "RelaxedOneHot": D.RelaxedOneHotCategorical(v(0.5), pr),
        "StudentT": D.StudentT(v([3.0, 5.0]), v([0.0, 1.0]), v([1.0, 2.0])),
        "Transformed": D.TransformedDistribution(
            D.Uniform(v([0.0, 0.0]), v([1.0, 1.0])),
            [D.SigmoidTransform().inv, D.AffineTransform(v(1.0), v([2.0, 3.0]))],
        ),
        "Uniform": D.Uniform(v([0.0, -1.0]), v([1.0, 2.0])),
        "VonMises": D.VonMises(v([0.0, 1.0]), v([1.0, 4.0])),
        "Weibull": D.Weibull(v([1.0, 2.0]), v([1.5, 0.7])),
        "Wishart": D.Wishart(v(5.0), S),
    }


def flat(x):
    """A tensor as shape and numbers that JSON can hold."""
    x = x.detach()
    return [list(x.shape), [float(n) for n in x.reshape(-1).tolist()]]


def describe(t, d):
    """Draws, densities, moments and the repr; what a distribution does not have is left out."""
    out = {"repr": repr(d)}
    t.manual_seed(11)
    x = d.sample((4,))
    out["sample"] = flat(x)
    out["after"] = flat(t.rand(2))
    out["log_prob"] = flat(d.log_prob(x))
    if d.has_rsample:
        t.manual_seed(3)
        out["rsample"] = flat(d.rsample())
    for name in ("mean", "variance", "mode", "stddev"):
        try:
            out[name] = flat(getattr(d, name))
        except (NotImplementedError, AttributeError):
            continue
    for name, call in (
        ("entropy", lambda: d.entropy()),
        ("cdf", lambda: d.cdf(x)),
        ("icdf", lambda: d.icdf(t.full(d.batch_shape, 0.3))),
        ("enumerate", lambda: d.enumerate_support()),
        ("expanded", lambda: d.expand((2,) + tuple(d.batch_shape)).log_prob(x[:2].unsqueeze(1))),
    ):
        try:
            out[name] = flat(call())
        except NotImplementedError:
            continue
    out["support"] = repr(d.support).split("(")[0]
    return out


def divergences(t, dists):
    """(p, q) -> KL for all pairs of univariate families, and within the multivariate ones."""
    simple = ["Normal", "Bernoulli", "Beta", "Binomial", "Cauchy", "ContinuousBernoulli", "Exponential", "Gamma",
              "Geometric", "Gumbel", "HalfNormal", "Laplace", "LogNormal", "Pareto", "Poisson", "Uniform", "MVN",
              "MVNtril", "LowRank", "Dirichlet", "Categorical", "OneHot", "Independent", "Chi2"]  # fmt: skip
    out = {}
    for p in simple:
        for q in simple:
            try:
                value = t.distributions.kl_divergence(dists[p], dists[q])
            except (NotImplementedError, RuntimeError, ValueError):
                continue
            out[f"{p} {q}"] = flat(value)
    return out


def transforms(t):
    """name -> (transform, input)."""
    T, v = t.distributions.transforms, t.tensor
    x = v([[0.3, -0.7, 1.2], [2.0, 0.1, -1.5]])
    D = t.distributions
    return {
        "exp": (T.ExpTransform(), x),
        "power": (T.PowerTransform(v(2.5)), x.abs()),
        "sigmoid": (T.SigmoidTransform(), x),
        "tanh": (T.TanhTransform(), x),
        "softplus": (T.SoftplusTransform(), x),
        "affine": (T.AffineTransform(v(1.0), v([2.0, -3.0, 0.5]), event_dim=1), x),
        "corr": (T.CorrCholeskyTransform(), x),
        "stick": (T.StickBreakingTransform(), x),
        "reshape": (T.ReshapeTransform((3,), (3, 1)), x),
        "cat": (T.CatTransform([T.ExpTransform(), T.TanhTransform()], dim=1, lengths=[1, 2]), x),
        "stack": (T.StackTransform([T.ExpTransform(), T.TanhTransform(), T.SigmoidTransform()], dim=1), x),
        "compose": (T.ComposeTransform([T.AffineTransform(0.5, 2.0), T.TanhTransform()]), x),
        "independent": (T.IndependentTransform(T.ExpTransform(), 1), x),
        "cdf": (T.CumulativeDistributionTransform(D.Normal(v(0.0), v(1.0))), x),
        "inverse": (T.SigmoidTransform().inv, x.sigmoid()),
        "biject simplex": (D.biject_to(D.constraints.simplex), x),
        "biject interval": (D.biject_to(D.constraints.interval(-1.0, 2.0)), x),
        "biject greater": (D.biject_to(D.constraints.greater_than(1.5)), x),
        "biject less": (D.biject_to(D.constraints.less_than(1.5)), x),
    }


def run_transform(transform, x):
    """Output, inverse of the output, log det jacobian."""
    y = transform(x)
    return [flat(y), flat(transform.inv(y)), flat(transform.log_abs_det_jacobian(x, y))]
