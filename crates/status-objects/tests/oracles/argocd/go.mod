module argocd

go 1.25.5

require (
	github.com/argoproj/argo-cd/v3 v3.2.12
	github.com/argoproj/gitops-engine v0.7.1-0.20260512161450-ff8d2f5207dc
	k8s.io/apimachinery v0.34.0
)
