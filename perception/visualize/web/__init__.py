"""Web page of the slot task: scene, clouds, potential, episodes, and demonstrations by hand."""
