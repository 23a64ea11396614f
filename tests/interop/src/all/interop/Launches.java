package interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.springframework.batch.core.BatchStatus;
import org.springframework.batch.core.JobExecution;

/** Many launches at the same time. */
final class Launches {
    private final Repository repository;
    private final String job;

    Launches(Repository repository, String job) {
        this.repository = repository;
        this.job = job;
    }

    /** Launches instances that differ by the parameter {@code run}: a prefix and a number. */
    JsonNode all(int count, int threads, String prefix) throws InterruptedException {
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        List<Future<JobExecution>> launches = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            String run = prefix + number;
            launches.add(pool.submit(() -> launch(run)));
        }
        pool.shutdown();
        int completed = 0;
        ArrayNode problems = Main.JSON.createArrayNode();
        for (Future<JobExecution> launch : launches) {
            try {
                JobExecution execution = launch.get();
                if (execution.getStatus() == BatchStatus.COMPLETED) {
                    completed++;
                } else {
                    problems.add(execution.getStatus() + ": " + execution.getExitStatus().getExitDescription());
                }
            } catch (ExecutionException problem) {
                problems.add(Main.text(problem.getCause()));
            }
        }
        ObjectNode ended = Main.JSON.createObjectNode();
        ended.put("completed", completed);
        ended.set("problems", problems);
        return ended;
    }

    private JobExecution launch(String run) throws Exception {
        ArrayNode parameters = Main.JSON.createArrayNode();
        ObjectNode parameter = parameters.addObject();
        parameter.put("name", "run").put("type", "STRING").put("value", run).put("identifying", true);
        return repository.run(job, Parameters.of(parameters));
    }
}
