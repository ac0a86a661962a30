"""k-means: private centroids, in noisy rounds or from one noisy histogram."""

from blowfishdb.mechanisms.kmeans.clustering import Clustering, ClusterPlan, Progress, Round
from blowfishdb.mechanisms.kmeans.histogram import HistogramClusters
from blowfishdb.mechanisms.kmeans.mechanism import KMeans
from blowfishdb.mechanisms.kmeans.rounds import RoundClusters

__all__ = [
    "ClusterPlan",
    "Clustering",
    "HistogramClusters",
    "KMeans",
    "Progress",
    "Round",
    "RoundClusters",
]
