package interop;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Date;
import java.util.HashMap;
import java.util.concurrent.CountDownLatch;
import org.springframework.batch.core.ExitStatus;
import org.springframework.batch.core.Job;
import org.springframework.batch.core.Step;
import org.springframework.batch.core.StepContribution;
import org.springframework.batch.core.StepExecution;
import org.springframework.batch.core.scope.context.ChunkContext;
import org.springframework.batch.item.ExecutionContext;
import org.springframework.batch.item.ItemProcessor;
import org.springframework.batch.item.support.AbstractItemCountingItemStreamItemReader;
import org.springframework.batch.item.support.ListItemReader;
import org.springframework.batch.repeat.RepeatStatus;

/** The jobs. Those of the same names on the other side have the same steps. */
final class Jobs {
    private final Repository repository;

    Jobs(Repository repository) {
        this.repository = repository;
    }

    Job[] all() {
        return new Job[] {
            job("skips", skipping()),
            job("prepared", repository.tasklet("prepare", Jobs::nothing), repository.tasklet("load", this::load)),
            job("waits", repository.tasklet("wait", this::wait)),
            job("crashes", repository.tasklet("first", Jobs::nothing), repository.tasklet("second", this::second)),
            repeating(),
        };
    }

    private Job job(String name, Step... steps) {
        var builder = repository.job(name).start(steps[0]);
        for (Step step : Arrays.asList(steps).subList(1, steps.length)) {
            builder = builder.next(step);
        }
        return builder.build();
    }

    /** Runs its step three times in one execution. */
    private Job repeating() {
        Step again = repository.tasklet("again", (contribution, chunk) -> {
            long ran = contribution.getStepExecution().getJobExecution().getStepExecutions().size();
            contribution.setExitStatus(new ExitStatus(ran < 3 ? "AGAIN" : "ENOUGH"));
            return RepeatStatus.FINISHED;
        });
        return repository
                .job("repeats")
                .start(again)
                .on("AGAIN")
                .to(again)
                .from(again)
                .on("*")
                .end()
                .end()
                .build();
    }

    /** Twenty numbers by fours. */
    private Step skipping() {
        return repository
                .<Integer, Integer>chunk("load", 4)
                .reader(new Numbers())
                .processor((ItemProcessor<Integer, Integer>) Jobs::processed)
                .writer(items -> {})
                .faultTolerant()
                .skip(IllegalArgumentException.class)
                .skipLimit(3)
                .build();
    }

    /** One is skipped, one filtered, and one fails. */
    private static Integer processed(Integer number) {
        switch (number) {
            case 6:
                throw new IllegalArgumentException("a six");
            case 18:
                throw new IllegalStateException(message());
            default:
                return number == 11 ? null : number;
        }
    }

    /** Longer than the column, and beyond Latin-1. */
    static String message() {
        return "größer 漢字 😀 ".repeat(400);
    }

    private static RepeatStatus nothing(StepContribution contribution, ChunkContext chunk) {
        return RepeatStatus.FINISHED;
    }

    /** Fails or says what the parameter {@code load} tells; keeps something of each kind in both contexts. */
    private RepeatStatus load(StepContribution contribution, ChunkContext chunk) {
        StepExecution step = contribution.getStepExecution();
        for (ExecutionContext context :
                Arrays.asList(step.getExecutionContext(), step.getJobExecution().getExecutionContext())) {
            context.putString("text", "größer 漢字 😀");
            context.putLong("long", 5_000_000_000L);
            context.putInt("int", 7);
            context.putDouble("double", 0.5);
            context.put("date", new Date(1_704_067_200_123L));
            context.put("list", new ArrayList<>(Arrays.asList("a", "b")));
            context.put("map", new HashMap<>(Collections.singletonMap("key", 1L)));
            context.putString("much", message());
        }
        String told = step.getJobParameters().getString("load", "");
        if (told.equals("fail")) {
            throw new IllegalStateException(message());
        }
        contribution.setExitStatus(new ExitStatus("COMPLETED", told));
        return RepeatStatus.FINISHED;
    }

    /** Waits until it is stopped; every turn commits, and looks. */
    private RepeatStatus wait(StepContribution contribution, ChunkContext chunk) throws InterruptedException {
        if (contribution.getStepExecution().getCommitCount() == 0) {
            Main.say("waiting " + contribution.getStepExecution().getJobExecutionId());
        }
        Thread.sleep(20);
        return RepeatStatus.CONTINUABLE;
    }

    /** Completes, but waits until the JVM is killed if the parameter {@code wait} is "yes". */
    private RepeatStatus second(StepContribution contribution, ChunkContext chunk) throws InterruptedException {
        StepExecution step = contribution.getStepExecution();
        Main.say("second " + step.getJobExecutionId());
        if (step.getJobParameters().getString("wait", "").equals("yes")) {
            new CountDownLatch(1).await();
        }
        return RepeatStatus.FINISHED;
    }

    /** The numbers to twenty, with the state that Spring Batch's own readers keep. */
    private static final class Numbers extends AbstractItemCountingItemStreamItemReader<Integer> {
        private ListItemReader<Integer> numbers;

        Numbers() {
            setName("numbers");
        }

        @Override
        protected Integer doRead() {
            return numbers.read();
        }

        @Override
        protected void doOpen() {
            Integer[] all = new Integer[20];
            Arrays.setAll(all, index -> index + 1);
            numbers = new ListItemReader<>(Arrays.asList(all));
        }

        @Override
        protected void doClose() {
            numbers = null;
        }
    }
}
